//! The URI of a source, with its password taken out.

use url::Url;

/// Where a source is, and the password that was written into it.
#[derive(Clone)]
pub struct SourceUri {
    url: Url,
    /// The password, where one was in the URI.
    pub password: Option<String>,
}

/// Leaves out the password.
impl std::fmt::Debug for SourceUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.url.as_str())
    }
}

impl SourceUri {
    /// Reads `postgresql://user@host:port/database`. The error never repeats the text: there may be a
    /// password in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write it as postgresql://user@host:port/database";
        let mut url = Url::parse(text).map_err(|error| format!("{error}; {form}"))?;
        if !matches!(url.scheme(), "postgresql" | "postgres") {
            return Err(format!("its scheme is not postgresql; {form}"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(format!("it names no host; {form}"));
        }
        let password = url.password().map(decode);
        url.set_password(None).map_err(|()| form.to_owned())?;
        Ok(SourceUri { url, password })
    }

    /// The URI without a password.
    pub fn without_password(&self) -> &str {
        self.url.as_str()
    }

    /// The fields that a password file is searched by: host, port, database, user.
    pub fn search_fields(&self) -> [String; 4] {
        let database = decode(self.url.path().trim_start_matches('/'));
        let user = decode(self.url.username());
        let or = |text: String, default: &str| if text.is_empty() { default.into() } else { text };
        [
            self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
            self.url.port().unwrap_or(5432).to_string(),
            or(database, "postgres"),
            or(user, "postgres"),
        ]
    }
}

/// Undoes the `%XX` of a URI.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
