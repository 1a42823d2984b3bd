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
