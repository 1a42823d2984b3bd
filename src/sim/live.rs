//! What can be looked at and changed in a target without a command, while a host uses it.

use std::io::Write;

use super::bridge::Inner;
use super::spec::{self, Fault, Trouble};
use super::{LogEntry, SpecError, Target};

/// The most blocks that are looked at in one go.
pub const MAX_PEEK_BLOCKS: u64 = 64;

/// Options that can change, in the order of their names.
pub const LIVE_OPTIONS: &[&str] = &[
    "ambient",
    "fault",
    "fault_after",
    "fault_count",
    "fault_on",
    "health",
    "power",
    "temp",
];

/// Where entries of the log go besides.
#[derive(Default)]
pub(super) struct LogSink(Option<Box<dyn Write + Send>>);

impl std::fmt::Debug for LogSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "LogSink(set)"
        } else {
            "LogSink(none)"
        })
    }
}

impl LogSink {
    /// One entry as one JSON line, at once.
    pub(super) fn write(&mut self, entry: &LogEntry) {
        let Some(sink) = &mut self.0 else { return };
        let Ok(mut line) = serde_json::to_vec(entry) else {
            return;
        };
        line.push(b'\n');
        if sink.write_all(&line).and_then(|()| sink.flush()).is_err() {
            // The sink has seen the failure; a log with holes would be worse than one that ends.
            self.0 = None;
        }
    }
}

impl Target {
    /// Writes every command that comes from now on to `sink` too, as one JSON line each, flushed. After the first write that
    /// fails nothing more is written.
    pub fn set_log_sink(&mut self, sink: Box<dyn Write + Send>) {
        self.log_sink = LogSink(Some(sink));
    }

    /// Bytes per logical block.
    pub fn block_bytes(&self) -> u64 {
        self.bridge.sector_bytes()
    }

    /// Logical blocks that the bridge claims.
    pub fn blocks(&self) -> u64 {
        self.bridge.sectors()
    }

    /// What the drive's sensor shows, in °C; `None` where there is no sensor.
    pub fn temperature_celsius(&self) -> Option<i8> {
        match self.bridge.inner() {
            Inner::Ata(drive) => drive.temperature_c(),
            Inner::Flash(_) => None,
        }
    }

    /// What logical blocks read as, without a command.
    ///
    /// # Errors
    /// No or more than 64 blocks, or some that are not there.
    pub fn peek(&self, lba: u64, count: u64) -> Result<Vec<u8>, SpecError> {
        self.check_extent(lba, count)?;
        let per_block = self.bridge.sectors_per_block();
        self.bridge
            .medium()
            .read(lba * per_block, count * per_block)
            .map_err(|e| SpecError {
                why: format!("block {lba}: {e:?}"),
            })
    }

    /// Changes logical blocks without a command.
    ///
    /// # Errors
    /// No whole number of blocks, more than 64, or some that are not there.
    pub fn poke(&mut self, lba: u64, data: &[u8]) -> Result<(), SpecError> {
        let block = self.block_bytes();
        let len = data.len() as u64;
        if len == 0 || !len.is_multiple_of(block) {
            return Err(SpecError {
                why: format!("{len} bytes are no whole number of blocks of {block} bytes"),
            });
        }
        self.check_extent(lba, len / block)?;
        let lba = lba * self.bridge.sectors_per_block();
        let medium = self.bridge.medium_mut();
        medium.set_write_fault(None);
        medium.write(lba, data).map(drop).map_err(|e| SpecError {
            why: format!("block {lba}: {e:?}"),
        })
    }

    fn check_extent(&self, lba: u64, count: u64) -> Result<(), SpecError> {
        let why = if !(1..=MAX_PEEK_BLOCKS).contains(&count) {
            format!("from 1 to {MAX_PEEK_BLOCKS} blocks at one time, not {count}")
        } else if lba
            .checked_add(count)
            .is_none_or(|end| end > self.bridge.whole_blocks())
        {
            format!(
                "the last block is {}",
                self.bridge.whole_blocks().saturating_sub(1)
            )
        } else {
            return Ok(());
        };
        Err(SpecError { why })
    }

    /// Changes one option: `temp` (`auto` lets the sensor follow the model again), `ambient`, `fault` (`none` ends it,
    /// and forgets when and on what it was to strike), `fault_after`, `fault_count`, `fault_on`, `health`, `power`. The values are those of the profile's options.
    ///
    /// # Errors
    /// An option that is unknown or cannot change, or a value that it does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        if !LIVE_OPTIONS.contains(&key) || value.contains(',') {
            return Err(SpecError {
                why: format!(
                    "{key:?} cannot be changed to {value:?} while the device is in use; there are: {}",
                    LIVE_OPTIONS.join(", ")
                ),
            });
        }
        match (key, value) {
            ("temp", "auto") => {
                self.drive("temp")?.pin_temperature(None);
                return Ok(());
            }
            ("fault", "none") => {
                *self.bridge.trouble_mut() = Trouble::default();
                if let Inner::Ata(drive) = self.bridge.inner_mut() {
                    drive.set_garbage(false);
                }
                return Ok(());
            }
            _ => {}
        }
        // The options are read in one place, whether they come at the start or later.
        let (profile, options) = spec::parse(&format!("{},{key}={value}", self.profile.name))?;
        match key {
            "temp" => self.drive(key)?.pin_temperature(options.temp_c),
            "health" => self.drive(key)?.set_health(options.health),
            "power" => self.drive(key)?.force_power(options.power),
            "fault" => {
                let garbage = options.trouble.fault == Some(Fault::GarbageTemp);
                if let Inner::Ata(drive) = self.bridge.inner_mut() {
                    drive.set_garbage(garbage);
                }
                self.bridge.trouble_mut().fault = options.trouble.fault;
            }
            "fault_after" => self.bridge.trouble_mut().after = options.trouble.after,
            "fault_count" => self.bridge.trouble_mut().count = options.trouble.count,
            "fault_on" => self.bridge.trouble_mut().scope = options.trouble.scope,
            "ambient" => {
                let taken = match self.bridge.inner_mut() {
                    Inner::Ata(drive) => drive.set_ambient(profile.ambient_c),
                    Inner::Flash(flash) => flash.set_ambient(profile.ambient_c),
                };
                if !taken {
                    return Err(SpecError {
                        why: "this profile has no thermal model".to_owned(),
                    });
                }
            }
            other => {
                return Err(SpecError {
                    why: format!("{other} cannot be changed while the device is in use"),
                });
            }
        }
        Ok(())
    }

    fn drive(&mut self, key: &str) -> Result<&mut super::drive::AtaDrive, SpecError> {
        match self.bridge.inner_mut() {
            Inner::Ata(drive) => Ok(drive),
            Inner::Flash(_) => Err(SpecError {
                why: format!("native flash has no {key}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn options_change_while_in_use() {
        let mut target = Target::open("ssd").unwrap();
        target.set("temp", "44").unwrap();
        assert_eq!(target.temperature_celsius(), Some(44));
        target.set("temp", "auto").unwrap();
        assert_ne!(target.temperature_celsius(), Some(44));
        target.set("power", "standby").unwrap();
        assert_eq!(target.power_state(), "standby");
        assert_eq!(target.wakes(), 0);
        target.set("ambient", "30").unwrap();
        target.set("health", "failing").unwrap();
        target.set("fault", "garbage-temp").unwrap();
        assert_eq!(target.temperature_celsius(), Some(127));
        target.set("fault", "none").unwrap();
        assert_ne!(target.temperature_celsius(), Some(127));
        for (key, value) in [
            ("temp", "999"),
            ("serial", "X"),
            ("fault", "echo,temp=3"),
            ("power", ""),
        ] {
            assert!(target.set(key, value).is_err(), "{key}={value}");
        }
        let mut stick = Target::open("stick").unwrap();
        assert!(stick.set("temp", "40").unwrap_err().why.contains("native flash"));
    }

    #[test]
    fn blocks_are_seen_and_changed_without_a_command() {
        let mut target = Target::open("hdd-4kn").unwrap();
        assert_eq!(target.block_bytes(), 4096);
        target.poke(7, &[0xa5; 8192]).unwrap();
        assert_eq!(target.peek(8, 1).unwrap(), vec![0xa5; 4096]);
        assert_eq!(target.peek(9, 1).unwrap(), vec![0; 4096]);
        assert!(target.log().is_empty());
        for (lba, count) in [(0, 0), (0, 65), (u64::MAX, 1)] {
            assert!(target.peek(lba, count).is_err(), "{lba} {count}");
        }
        assert!(target.poke(0, &[0; 512]).is_err());
        assert!(target.poke(0, &[]).is_err());
    }

    #[test]
    fn the_sink_gets_each_command_at_once() {
        let sink = Shared::default();
        let mut target = Target::open("ssd").unwrap();
        target.set_log_sink(Box::new(sink.clone()));
        target.command(&[0; 6], &[], 0, Duration::from_secs(1));
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "{\"cdb\":\"00 00 00 00 00 00\",\"at_us\":0,\"status\":0}\n");
    }
}
