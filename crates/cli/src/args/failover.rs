//! `offshoot failover`

use super::JobArgs;
use clap::Args;

/// Go on without another engine: its copies become dSources of this engine
///
/// For the engine that is sent to, when the one that sends is lost, or is to be relieved (--planned). dSources that are
/// NAMESPACE/NAME become NAME, with their histories, VDBs and bookmarks; nothing that the other engine sends is taken any more.
/// A dSource goes on where its history ends, if the source still has the log: by itself where its password came with it, and
/// otherwise once 'offshoot dsource set NAME --password-file FILE' says how the source is reached. Of each copy of a VDB, which
/// stays NAMESPACE/NAME, the VDB is made again, as its users had it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot failover west\n  \
                        offshoot failover west --planned\n  \
                        offshoot failover west --force --rename shop=shop-west\n  \
                        offshoot dsource set shop --password-file production.password")]
pub struct FailoverArgs {
    /// The name of the other engine, as its copies show it: NAMESPACE/NAME
    pub namespace: String,
    /// Have the other engine stop first and send the last of what it has, so that nothing is lost; it is asked when it calls
    /// next
    #[arg(long, conflicts_with = "force")]
    pub planned: bool,
    /// Do it although the other engine was heard a moment ago, or answers
    #[arg(long)]
    pub force: bool,
    /// Give a dSource or VDB another name than it has there; may be given several times
    #[arg(long, value_name = "NAME=NEW", value_parser = rename)]
    pub rename: Vec<(String, String)>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub job: JobArgs,
}

fn rename(text: &str) -> Result<(String, String), String> {
    let (name, new) =
        text.split_once('=').ok_or_else(|| "write it as shop=shop-west".to_owned())?;
    Ok((name.trim().to_owned(), new.trim().to_owned()))
}
