//! Histories and their bookmarks as the API shows them.

use super::{kind, snapshot};
use offshoot_api as api;
use offshoot_domain::{LogRange, Position};
use offshoot_engine::{BookmarkView, HistoryView, TimeflowView};

pub(super) fn bookmark(view: BookmarkView) -> api::Bookmark {
    let BookmarkView { bookmark, object, kind: of } = view;
    api::Bookmark {
        id: bookmark.id,
        name: bookmark.name.to_string(),
        object,
        object_kind: kind(of),
        snapshot: bookmark.snapshot,
        lsn: bookmark.position.lsn,
        time: bookmark.position.time,
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
    let origin = view.timeflow.origin.map(|origin| api::Position {
        snapshot: Some(origin.snapshot),
        lsn: Some(origin.position.lsn),
        time: Some(origin.position.time),
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
        ranges: view.ranges.into_iter().map(range).collect(),
        gaps: view.gaps.into_iter().map(range).collect(),
        snapshots: view.snapshots.into_iter().map(snapshot).collect(),
        recovery_points: view.recovery_points.into_iter().map(snapshot).collect(),
        bookmarks,
    }
}

fn range(of: LogRange) -> api::TimeRange {
    api::TimeRange { from: point(of.from), to: point(of.to) }
}

fn point(at: Position) -> api::TimePoint {
    api::TimePoint { lsn: at.lsn, time: at.time }
}
