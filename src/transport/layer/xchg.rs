//! The exchange file (`.xchg`): one grammar for recording, replaying, scripts and bug reports.
//!
//! Line-based text, UTF-8. `#` starts a comment; blank lines separate exchanges.
//!
//! ```text
//! @ facts {"driver":"uas",...}      what was known before the first command (JSON, once, optional)
//! > cdb a1 08 0e 00 01 00 00 00 00 ec 00 00
//! > in 512                          data-in phase of at most so many bytes
//! > out 05 00 01 00 ..              or: data-out bytes, 32 a line, repeated as needed
//! < status 00
//! < sense 72 01 00 1d ..            only if there is any
//! < in 40 00 ff 3f ..               data-in bytes, 32 a line, repeated as needed
//! < elapsed_us 812
//! ! timeout                         or, in place of the answer: ! gone, ! failed WHAT
//! ```

use std::fmt::Write;
use std::time::Duration;

use crate::text;
use crate::transport::{Cdb, Completion, Data, SenseBytes, Status, TransportError};

/// Bytes per line of payload.
const ROW_BYTES: usize = 32;

/// How a recorded command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The device answered.
    Answered {
        /// SCSI status.
        status: Status,
        /// Sense data.
        sense: SenseBytes,
        /// Data-in bytes.
        data: Vec<u8>,
    },
    /// No answer in time.
    TimedOut,
    /// The device went away.
    Gone,
    /// The transport failed.
    Failed {
        /// In words.
        what: String,
    },
}

/// One command and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The CDB.
    pub cdb: Cdb,
    /// The data phase.
    pub data: Data,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
}

/// A file that is not an exchange file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct XchgError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Everything in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The `@ facts` document, as it stands in the file.
    pub facts_json: Option<String>,
    /// The exchanges in order.
    pub exchanges: Vec<Exchange>,
}

impl Exchange {
    /// From what a transport returned; `None` for errors that mean "never sent".
    pub fn from_result(
        cdb: Cdb,
        data: Data,
        result: &Result<Completion, TransportError>,
        elapsed: Duration,
    ) -> Option<Self> {
        let outcome = match result {
            Ok(completion) => Outcome::Answered {
                status: completion.status,
                sense: completion.sense.clone(),
                data: completion.data.clone().unwrap_or_default(),
            },
            Err(TransportError::TimedOut { .. }) => Outcome::TimedOut,
            Err(TransportError::Gone { .. }) => Outcome::Gone,
            Err(TransportError::Failed { what, .. }) => Outcome::Failed { what: what.clone() },
            Err(_) => return None,
        };
        Some(Self {
            cdb,
            data,
            outcome,
            elapsed,
        })
    }

    /// The exchange as text, ending in a blank line.
    pub fn to_text(&self) -> String {
        let mut out = format!("# {}\n> cdb {}\n", self.cdb.name(), self.cdb);
        match &self.data {
            Data::None => {}
            Data::In { len_bytes } => {
                let _ = writeln!(out, "> in {len_bytes}");
            }
            Data::Out(buffer) => rows(&mut out, "> out", buffer),
        }
        match &self.outcome {
            Outcome::Answered { status, sense, data } => {
                let _ = writeln!(out, "< status {:02x}", status.0);
                if !sense.is_empty() {
                    let _ = writeln!(out, "< sense {}", text::hex(sense));
                }
                rows(&mut out, "< in", data);
            }
            Outcome::TimedOut => out.push_str("! timeout\n"),
            Outcome::Gone => out.push_str("! gone\n"),
            Outcome::Failed { what } => {
                let _ = writeln!(out, "! failed {}", text::for_terminal(what));
            }
        }
        let _ = writeln!(out, "< elapsed_us {}\n", self.elapsed.as_micros());
        out
    }
}

fn rows(out: &mut String, head: &str, bytes: &[u8]) {
    for chunk in bytes.chunks(ROW_BYTES) {
        let _ = writeln!(out, "{head} {}", text::hex(chunk));
    }
}

/// Reads a whole file.
///
/// # Errors
/// The first line that does not follow the grammar.
pub fn parse(file: &str) -> Result<Script, XchgError> {
    let mut script = Script::default();
    let mut open: Option<Draft> = None;
    for (index, raw) in file.lines().enumerate() {
        let line = index + 1;
        let fail = |why: &str| XchgError {
            line,
            why: why.to_owned(),
        };
        let text = raw.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (mark, rest) = text
            .split_once(' ')
            .ok_or_else(|| fail("expected `MARK WORD ...`"))?;
        let (word, value) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let bytes = || text::parse_hex(value).ok_or_else(|| fail("not hex bytes"));
        if mark == "@" {
            if word == "facts" {
                script.facts_json = Some(value.trim().to_owned());
            }
            continue;
        }
        if (mark, word) == (">", "cdb") {
            if let Some(draft) = open.take() {
                script.exchanges.push(draft.finish(line)?);
            }
            let cdb = Cdb::new(&bytes()?).ok_or_else(|| fail("a CDB has 6 to 32 bytes"))?;
            open = Some(Draft::new(cdb));
            continue;
        }
        let draft = open.as_mut().ok_or_else(|| fail("before the first `> cdb`"))?;
        match (mark, word) {
            (">", "in") => {
                let len_bytes = value.trim().parse().map_err(|_| fail("not a length in bytes"))?;
                draft.data = Data::In { len_bytes };
            }
            (">", "out") => match &mut draft.data {
                Data::Out(buffer) => buffer.extend(bytes()?),
                other => *other = Data::Out(bytes()?),
            },
            ("<", "status") => match bytes()?.as_slice() {
                [status] => draft.status = Some(Status(*status)),
                _ => return Err(fail("a status is one byte")),
            },
            ("<", "sense") => draft.sense.extend(bytes()?),
            ("<", "in") => draft.received.extend(bytes()?),
            ("<", "elapsed_us") => {
                let us = value
                    .trim()
                    .parse()
                    .map_err(|_| fail("not a number of microseconds"))?;
                draft.elapsed = Duration::from_micros(us);
            }
            ("!", "timeout") => draft.broken = Some(Outcome::TimedOut),
            ("!", "gone") => draft.broken = Some(Outcome::Gone),
            ("!", "failed") => {
                draft.broken = Some(Outcome::Failed {
                    what: value.to_owned(),
                })
            }
            _ => return Err(fail("unknown word")),
        }
    }
    if let Some(draft) = open {
        script.exchanges.push(draft.finish(file.lines().count())?);
    }
    Ok(script)
}

struct Draft {
    cdb: Cdb,
    data: Data,
    status: Option<Status>,
    sense: SenseBytes,
    received: Vec<u8>,
    elapsed: Duration,
    broken: Option<Outcome>,
}

impl Draft {
    fn new(cdb: Cdb) -> Self {
        Self {
            cdb,
            data: Data::None,
            status: None,
            sense: Vec::new(),
            received: Vec::new(),
            elapsed: Duration::ZERO,
            broken: None,
        }
    }

    fn finish(self, line: usize) -> Result<Exchange, XchgError> {
        let outcome = match (self.broken, self.status) {
            (Some(broken), _) => broken,
            (None, Some(status)) => Outcome::Answered {
                status,
                sense: self.sense,
                data: self.received,
            },
            (None, None) => {
                return Err(XchgError {
                    line,
                    why: "the exchange before this line has no answer".to_owned(),
                });
            }
        };
        Ok(Exchange {
            cdb: self.cdb,
            data: self.data,
            outcome,
            elapsed: self.elapsed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_back() {
        let answered = Exchange {
            cdb: Cdb::from_array([0x12, 0, 0, 0, 36, 0]),
            data: Data::In { len_bytes: 36 },
            outcome: Outcome::Answered {
                status: Status::CHECK_CONDITION,
                sense: vec![0x70, 0, 5],
                data: (0..70).collect(),
            },
            elapsed: Duration::from_micros(812),
        };
        let timed_out = Exchange {
            cdb: Cdb::from_array([0xa1, 10, 6, 0xd6, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0, 0, 0]),
            data: Data::Out(vec![7; 100]),
            outcome: Outcome::TimedOut,
            elapsed: Duration::from_secs(20),
        };
        let text = format!(
            "# header\n@ facts {{\"a\":1}}\n\n{}{}",
            answered.to_text(),
            timed_out.to_text()
        );
        let script = parse(&text).expect("own output");
        assert_eq!(script.facts_json.as_deref(), Some("{\"a\":1}"));
        assert_eq!(script.exchanges, [answered, timed_out]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse("> cdb 12 00\n").expect_err("two bytes");
        assert_eq!(error.line, 1);
        let error = parse("\n< status 00\n").expect_err("nothing open");
        assert_eq!(error.line, 2);
        assert!(parse("> cdb 00 00 00 00 00 00\n").is_err(), "no answer");
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
