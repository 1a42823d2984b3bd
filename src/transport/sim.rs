//! The simulator as a transport.

use std::time::Duration;

use super::{Command, Completion, Data, Finished, Limits, Recovery, Status, Tag, Transport, TransportError};
use crate::sim::{Reply, SpecError, Target};
use crate::time::{Clock, SharedClock};

/// A simulated target, opened by a `sim:` name.
#[derive(Debug)]
pub struct SimTransport {
    device: String,
    target: Target,
    finished: Finished,
}

impl SimTransport {
    /// Opens `sim:PROFILE[,option=value...]`.
    ///
    /// # Errors
    /// An unknown profile or option.
    pub fn open(device: &str) -> Result<Self, SpecError> {
        let target = Target::open(device.strip_prefix("sim:").unwrap_or(device))?;
        Ok(Self {
            device: device.to_owned(),
            target,
            finished: Finished::default(),
        })
    }

    /// The target itself: its command log, its wake counter.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What a kernel would know of this target.
    pub fn facts(&self) -> crate::sys::NodeFacts {
        self.target.facts()
    }
}

impl Transport for SimTransport {
    fn device(&self) -> &str {
        &self.device
    }

    fn clock(&self) -> SharedClock {
        self.target.clock()
    }

    fn limits(&self) -> Limits {
        Limits {
            queue_depth: 1,
            cdb_bytes: 16,
            transfer_bytes: 1 << 20,
            sense_bytes: 96,
        }
    }

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let (data_out, in_len_bytes): (&[u8], usize) = match &command.data {
            Data::None => (&[], 0),
            Data::In { len_bytes } => (&[], *len_bytes),
            Data::Out(buffer) => (buffer, 0),
        };
        let start = self.target.clock().now();
        let reply = self
            .target
            .command(command.cdb.as_bytes(), data_out, in_len_bytes, command.timeout);
        match reply {
            Reply::Answered {
                status,
                sense,
                data,
                elapsed,
            } => {
                let transferred_bytes = if in_len_bytes > 0 {
                    data.len()
                } else {
                    data_out.len()
                };
                let data = matches!(command.data, Data::In { .. }).then_some(data);
                let status = Status(status);
                Ok(self.finished.push(Completion {
                    status,
                    sense,
                    data,
                    transferred_bytes,
                    elapsed,
                }))
            }
            Reply::TimedOut { elapsed } => Err(TransportError::TimedOut {
                device: self.device.clone(),
                command: command.cdb.name(),
                cdb: command.cdb,
                timeout: command.timeout,
                elapsed: elapsed.max(self.target.clock().now().saturating_sub(start)),
            }),
            Reply::Gone => Err(TransportError::Gone {
                device: self.device.clone(),
                command: command.cdb.name(),
                cdb: command.cdb,
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
    use super::super::{Cdb, execute};
    use super::*;

    #[test]
    fn a_simulated_drive_answers_and_its_log_shows_it() {
        let mut transport = SimTransport::open("sim:ssd").unwrap();
        let cdb = Cdb::from_array([0xa1, 0x08, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0]);
        let command = Command::data_in(cdb, 512, Duration::from_secs(5));
        let completion = execute(&mut transport, command).unwrap();
        assert_eq!(completion.status, Status::GOOD);
        assert_eq!(
            (completion.transferred_bytes, completion.data.map(|d| d.len())),
            (512, Some(512))
        );
        assert_eq!(transport.target().log().len(), 1);
        assert_eq!(transport.clock().now(), completion.elapsed);
        let mut silent = SimTransport::open("sim:ssd,fault=timeout").unwrap();
        let command = Command::data_in(cdb, 512, Duration::from_secs(5));
        assert!(matches!(
            execute(&mut silent, command),
            Err(TransportError::TimedOut { .. })
        ));
        assert!(SimTransport::open("sim:none").is_err());
    }
}
