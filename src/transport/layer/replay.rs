//! Answers from a recording: `replay:FILE` names and scripted tests.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::xchg::{self, Exchange, Outcome, Script};
use crate::time::{SharedClock, VirtualClock};
use crate::transport::{
    Command, Completion, Data, Finished, Limits, Recovery, Tag, Transport, TransportError,
};

/// Plays an exchange file back, in its order. A command that is not the next one is an error that names both.
#[derive(Debug)]
pub struct Replay {
    device: String,
    script: Script,
    next: usize,
    clock: Arc<VirtualClock>,
    finished: Finished,
}

/// Recordings are small; a larger file is the wrong one.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Its path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file does not follow the grammar.
    #[error("{path}: {source}")]
    Grammar {
        /// Its path.
        path: String,
        /// Where and why.
        source: xchg::XchgError,
    },
}

impl Replay {
    /// Opens an exchange file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        let shown = path.display().to_string();
        let io = |source| ReplayError::Io {
            path: shown.clone(),
            source,
        };
        let mut file = String::new();
        let read = File::open(path)
            .map_err(io)?
            .take(MAX_FILE_BYTES + 1)
            .read_to_string(&mut file)
            .map_err(io)?;
        if read as u64 > MAX_FILE_BYTES {
            return Err(io(std::io::Error::other("larger than any recording (64 MiB)")));
        }
        let script = xchg::parse(&file).map_err(|source| ReplayError::Grammar {
            path: shown.clone(),
            source,
        })?;
        Ok(Self::new(format!("replay:{shown}"), script))
    }

    /// Plays `script`.
    pub fn new(device: String, script: Script) -> Self {
        Self {
            device,
            script,
            next: 0,
            clock: Arc::new(VirtualClock::new()),
            finished: Finished::default(),
        }
    }

    /// The `@ facts` document of the recording.
    pub fn facts_json(&self) -> Option<&str> {
        self.script.facts_json.as_deref()
    }

    /// Exchanges that were not asked for yet.
    pub fn remaining(&self) -> &[Exchange] {
        self.script.exchanges.get(self.next..).unwrap_or_default()
    }
}

impl Transport for Replay {
    fn device(&self) -> &str {
        &self.device
    }
    fn clock(&self) -> SharedClock {
        self.clock.clone()
    }
    fn limits(&self) -> Limits {
        Limits {
            queue_depth: 1,
            cdb_bytes: 32,
            transfer_bytes: 1 << 20,
            sense_bytes: 252,
        }
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let mismatch = |why: String| TransportError::ReplayMismatch {
            device: self.device.clone(),
            command: command.cdb.name(),
            cdb: command.cdb,
            why,
        };
        let Some(recorded) = self.script.exchanges.get(self.next) else {
            return Err(mismatch("the recording ends here".to_owned()));
        };
        if recorded.cdb != command.cdb || recorded.data != command.data {
            return Err(mismatch(format!(
                "{} [{}] comes next",
                recorded.cdb.name(),
                recorded.cdb
            )));
        }
        let recorded = recorded.clone();
        self.next += 1;
        self.clock.advance(recorded.elapsed);
        let (device, name, cdb) = (self.device.clone(), command.cdb.name(), command.cdb);
        match recorded.outcome {
            Outcome::Answered {
                status,
                sense,
                mut data,
            } => {
                let transferred_bytes = match &command.data {
                    Data::In { len_bytes } => {
                        data.truncate(*len_bytes);
                        data.len()
                    }
                    Data::Out(buffer) => buffer.len(),
                    Data::None => 0,
                };
                let data = matches!(command.data, Data::In { .. }).then_some(data);
                let elapsed = recorded.elapsed;
                Ok(self.finished.push(Completion {
                    status,
                    sense,
                    data,
                    transferred_bytes,
                    elapsed,
                }))
            }
            Outcome::TimedOut => Err(TransportError::TimedOut {
                device,
                command: name,
                cdb,
                timeout: command.timeout,
                elapsed: recorded.elapsed,
            }),
            Outcome::Gone => Err(TransportError::Gone {
                device,
                command: name,
                cdb,
            }),
            Outcome::Failed { what } => Err(TransportError::Failed {
                device,
                command: name,
                cdb,
                what,
                elapsed: recorded.elapsed,
            }),
        }
    }
    fn reap(&mut self, _wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        Ok(self.finished.pop())
    }
    fn cancel(&mut self, _tag: Tag) -> Result<(), TransportError> {
        Ok(())
    }
    fn recover(&mut self, _how: Recovery) -> Result<(), TransportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::*;
    use crate::transport::{Cdb, Status, execute};

    #[test]
    fn a_recording_plays_back_and_refuses_the_rest() {
        let inquiry = Cdb::from_array([0x12, 0, 0, 0, 4, 0]);
        let script =
            xchg::parse("> cdb 12 00 00 00 04 00\n> in 4\n< status 00\n< in 00 00 05 02\n< elapsed_us 90\n")
                .expect("script");
        let mut file = Vec::new();
        {
            let mut transport =
                Record::new(Replay::new("test".into(), script), &mut file, "{}").expect("header");
            let answer = execute(
                &mut transport,
                Command::data_in(inquiry, 4, Duration::from_secs(1)),
            );
            let answer = answer.expect("recorded");
            assert_eq!(
                (answer.status, answer.data.as_deref()),
                (Status::GOOD, Some(&[0, 0, 5, 2][..]))
            );
            let again = execute(
                &mut transport,
                Command::data_in(inquiry, 4, Duration::from_secs(1)),
            );
            assert!(matches!(again, Err(TransportError::ReplayMismatch { .. })));
        }
        let copy = xchg::parse(&String::from_utf8(file).expect("text")).expect("own output");
        assert_eq!(copy.exchanges.len(), 1, "a refused command is not recorded");
    }
}
