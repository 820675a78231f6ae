//! Those who are told of events, as the network reaches them. How is for whoever opens the engine to say.

/// A message to somebody who is told of events.
#[derive(Clone)]
pub struct Posting {
    /// Where to.
    pub url: String,
    /// Headers beside those of every such message.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

/// Leaves out what only the receiver should know.
impl std::fmt::Debug for Posting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posting").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// The way to those who are told of events.
pub trait Poster: Send + Sync {
    /// Sends a message by a POST of HTTP, and returns the status it is answered with. Ends within seconds, whatever the
    /// receiver does; follows no redirects, trusts no certificate that the host does not.
    ///
    /// # Errors
    /// Why there was no answer, in words that do not show the address.
    fn post(&self, posting: &Posting) -> Result<u16, String>;
}

/// Nobody can be told.
pub struct NoPoster;

impl Poster for NoPoster {
    fn post(&self, _: &Posting) -> Result<u16, String> {
        Err("this engine tells nobody; run it by 'offshoot serve'".to_owned())
    }
}
