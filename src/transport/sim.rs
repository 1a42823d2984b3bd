//! The simulator as a transport.

use std::sync::{Arc, Mutex, PoisonError};
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

    /// The target itself, to tell it of the load or to send it commands whose data nobody looks at.
    pub fn target_mut(&mut self) -> &mut Target {
        &mut self.target
    }

    /// The same target for several holders, as several open handles of one device.
    pub fn shared(self) -> SharedSim {
        SharedSim {
            device: self.device.clone(),
            inner: Arc::new(Mutex::new(self)),
        }
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

/// One of several handles on a simulated target.
#[derive(Debug, Clone)]
pub struct SharedSim {
    device: String,
    inner: Arc<Mutex<SimTransport>>,
}

impl SharedSim {
    /// Works with the transport itself; other handles wait meanwhile.
    pub fn with<R>(&self, work: impl FnOnce(&mut SimTransport) -> R) -> R {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for SharedSim {
    fn device(&self) -> &str {
        &self.device
    }

    fn clock(&self) -> SharedClock {
        self.with(|sim| sim.clock())
    }

    fn limits(&self) -> Limits {
        self.with(|sim| sim.limits())
    }

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        self.with(|sim| sim.submit(command))
    }

    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        self.with(|sim| sim.reap(wait))
    }

    fn cancel(&mut self, tag: Tag) -> Result<(), TransportError> {
        self.with(|sim| sim.cancel(tag))
    }

    fn recover(&mut self, how: Recovery) -> Result<(), TransportError> {
        self.with(|sim| sim.recover(how))
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
