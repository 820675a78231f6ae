//! Histories and their bookmarks as the API shows them.

use super::{kind, snapshot};
use offshoot_api as api;
use offshoot_engine::{
    BookmarkView, HistoryView, OpenRange, ShownPosition, ShownRange, TimeflowView,
};

pub(super) fn bookmark(view: BookmarkView) -> api::Bookmark {
    let BookmarkView { bookmark, position, object, kind: of } = view;
    api::Bookmark {
        id: bookmark.id,
        name: bookmark.name.to_string(),
        object,
        object_kind: kind(of),
        snapshot: bookmark.snapshot,
        lsn: position.log,
        time: position.time,
        created_at: bookmark.created_at,
    }
}

pub(super) fn timeflows(view: HistoryView) -> api::TimeflowList {
    let HistoryView { object, kind: of, timeflows } = view;
    api::TimeflowList {
        name: object,
        kind: kind(of),
        timeflows: timeflows.into_iter().map(timeflow).collect(),
    }
}

fn timeflow(view: TimeflowView) -> api::Timeflow {
    let kept = view.is_kept();
    let origin = view.origin.map(|at| api::Position {
        snapshot: view.timeflow.origin.as_ref().map(|origin| origin.snapshot),
        lsn: Some(at.log),
        time: Some(at.time),
    });
    let mut bookmarks: Vec<String> =
        view.snapshots.iter().flat_map(|one| one.bookmarks.clone()).collect();
    bookmarks.sort();
    api::Timeflow {
        id: view.timeflow.id,
        current: view.current,
        parent: view.timeflow.parent,
        origin,
        started_at: view.timeflow.started_at,
        ended_at: view.timeflow.ended_at,
        kept,
        ranges: view.ranges.into_iter().map(open_range).collect(),
        gaps: view.gaps.into_iter().map(range).collect(),
        snapshots: view.snapshots.into_iter().map(snapshot).collect(),
        recovery_points: view.recovery_points.into_iter().map(snapshot).collect(),
        bookmarks,
    }
}

fn open_range(of: OpenRange) -> api::OpenRange {
    let api::TimeRange { from, to } = range(of.moments);
    api::OpenRange {
        from,
        to,
        typical_open_ms: of.times.map(|times| times.typical_ms),
        longest_open_ms: of.times.map(|times| times.longest_ms),
    }
}

fn range(of: ShownRange) -> api::TimeRange {
    api::TimeRange { from: point(of.from), to: point(of.to) }
}

fn point(at: ShownPosition) -> api::TimePoint {
    api::TimePoint { lsn: at.log, time: at.time }
}
