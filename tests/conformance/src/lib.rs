//! One suite that every connector passes: each promise of the interface in `offshoot-connector` is one test.
//!
//! A connector's tests implement [`Harness`], which says how to do what no connector does (start a database in
//! production, commit, read what a server shows), and expand [`conformance!`], which makes a test of each promise.
//! The suite plays the engine: it knows nothing but the interface, keeps datasets in plain directories and takes
//! their images by copying.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::too_many_lines)]

mod files;
mod harness;
mod linked;
pub mod promises;
mod random;

pub use files::give_to;
pub use harness::{Content, Harness, PATIENCE, Production, Setting};
pub use linked::{Image, Linked, Written, until};
pub use random::Random;

/// Makes a test of each promise, or of those named, on the harness that an expression gives; ignored ones where it is said
/// what they need.
#[macro_export]
macro_rules! conformance {
    (@all $about:tt $harness:expr) => {
        $crate::conformance! { @parts $about $harness;
            source: a_source_is_named_alike_each_time, a_wrong_secret_is_refused_with_a_hint,
                a_source_that_is_not_there_is_said_to_be, a_version_without_programs_is_named,
                a_uri_is_kept_without_its_secret, a_reservation_is_made_and_released_twice,
                a_cancelled_copy_is_made_again, an_unknown_state_is_an_error;
            stream: the_stream_receives_everything, a_proof_has_every_commit_up_to_its_time,
                what_was_received_is_there_after_a_crash, a_stream_goes_on_when_its_source_does,
                log_of_another_database_is_not_received, a_gap_is_named;
            log: positions_order_as_commits, questions_agree_with_the_list_of_commits,
                log_is_forgotten_in_whole_files, damaged_log_is_named_and_never_misread,
                positions_are_read_as_they_are_written;
            moment: any_moment_shows_exactly_its_commits, a_moment_between_commits_shows_those_before,
                a_moment_opens_the_same_each_time, a_moment_that_is_not_kept_is_unavailable,
                a_clone_that_was_opened_is_refused, a_killed_replay_is_repeated_on_a_new_clone,
                a_cancelled_replay_leaves_nothing_running, an_image_is_cloned_and_opened;
            staging: staging_follows_in_small_steps, staging_goes_on_after_any_stop;
            point: a_recovery_point_goes_on_like_any_image, staging_goes_on_from_a_recovery_point;
            server: a_server_is_found_again, a_leftover_is_stopped_by_its_runtime_directory,
                a_taken_port_is_said_to_be, a_stop_is_clean_or_recovered_from,
                a_killed_start_is_repeated, ties_are_cut_for_good, logins_are_those_granted,
                settings_are_looked_at_first;
            image: a_sound_image_passes_and_a_flipped_bit_is_found;
            masking: what_rules_name_is_masked_alike;
        }
    };
    (@parts $about:tt $harness:expr; $($part:ident: $($promise:ident),+;)+) => {
        $crate::conformance! { @tests $about $harness; $($($part $promise,)+)+ }
    };
    (@tests $about:tt $harness:expr; $($part:ident $promise:ident,)+) => {
        $($crate::conformance! { @test $about $harness; $part $promise })+
    };
    (@test [$(#[$about:meta])*] $harness:expr; $part:ident $promise:ident) => {
        #[test]
        $(#[$about])*
        fn $promise() {
            $crate::promises::$part::$promise(&$harness);
        }
    };
    (ignored $needs:literal, $harness:expr) => {
        $crate::conformance! { @all [#[ignore = $needs]] $harness }
    };
    (ignored $needs:literal, $harness:expr; $($parts:tt)+) => {
        $crate::conformance! { @parts [#[ignore = $needs]] $harness; $($parts)+ }
    };
    ($harness:expr) => {
        $crate::conformance! { @all [] $harness }
    };
}
