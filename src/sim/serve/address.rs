//! Where a face listens: `PORT`, `HOST:PORT` or `unix:PATH`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A place to listen at or to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Name or number of the host, and a port; port 0 lets the system choose when listening.
    Tcp {
        /// Host, without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

/// An address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no address: write PORT (on 127.0.0.1), HOST:PORT or unix:PATH")]
pub struct AddressError {
    /// What was given.
    pub given: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError {
            given: text.to_owned(),
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(bad())
            } else {
                Ok(Self::Unix(PathBuf::from(path)))
            };
        }
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse::<u16>().ok()).flatten()
        };
        let Some((host, port)) = text.rsplit_once(':') else {
            return Ok(Self::Tcp {
                host: "127.0.0.1".to_owned(),
                port: number(text).ok_or_else(bad)?,
            });
        };
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let named = bare.unwrap_or(host);
        if named.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(bad());
        }
        Ok(Self::Tcp {
            host: named.to_owned(),
            port: number(port).ok_or_else(bad)?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (given, shown) in [
            ("4000", "127.0.0.1:4000"),
            ("0", "127.0.0.1:0"),
            ("localhost:3240", "localhost:3240"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:65535", "[::1]:65535"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
        ] {
            let address: Address = given.parse().expect(given);
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse::<Address>(), Ok(address));
        }
        for bad in [
            "", "x", "unix:", ":80", "::1:80", "h:", "h:65536", "h:+1", "-1", "[]:1",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
