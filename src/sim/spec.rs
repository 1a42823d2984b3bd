//! What follows `sim:`: a profile and options.

use std::str::FromStr;

use super::SpecError;
use super::drive::power::Mode;
use super::profiles::{self, CkCond, Profile, Sat, SenseCap, SenseFormat, UasEndpoints, Unknown};

/// Options with what they do, in the order of their names.
pub const OPTIONS: &[(&str, &str)] = &[
    ("ambient", "air temperature in °C, -40 to 80"),
    (
        "becoming_ready",
        "the first N commands answer 02/04/01, becoming ready",
    ),
    (
        "bridge",
        "the bridge in front of the drive: asm1051-usb2, asm1051e, asm1053e, asm1153e, asm225cm, jms567, jms578, \
         phison-stick, rtl9201, stick, vl716",
    ),
    (
        "ckcond",
        "CK_COND on success: honour, ignore (GOOD), empty (zero registers) or refuse (05/24/00)",
    ),
    ("ext", "0: the bridge refuses 48-bit commands; 1: it takes them"),
    (
        "fault",
        "zero-success, echo, timeout (until reset), late (61 s), gone, replug (off the bus and back), short, bad-checksum, \
         swapped, garbage-temp; on USB also stall, csw-tag, csw-residue, phase-error, babble, hang (until reset), \
         die-after-vendor (a vendor command kills the next read)",
    ),
    (
        "fault_after",
        "so many commands that it could strike pass before the fault does",
    ),
    ("fault_count", "how often the fault strikes; without it, always"),
    (
        "fault_on",
        "commands that the fault strikes: pass-through (default), read, write or any",
    ),
    (
        "health",
        "good, failing (SMART status bad) or worn (endurance used up)",
    ),
    (
        "log_temperature",
        "1: the bridge has LOG SENSE page 0Dh, temperature",
    ),
    (
        "payload",
        "keep (default) or drop: whether written data is held in memory",
    ),
    ("power", "state at the start: active, idle, standby or sleep"),
    ("sat", "ATA PASS-THROUGH CDBs taken: both, 16, 12 or none"),
    ("seed", "number that starts the random source"),
    (
        "sense",
        "pass-through results as descriptor or fixed sense data, or empty",
    ),
    (
        "sense_cap",
        "sense bytes that reach the host: full, 18, or learn (18 until the host knows better)",
    ),
    ("serial", "serial number of the inner drive"),
    ("speed", "of the USB link, in Mbit/s: 480, 5000 or 10000"),
    ("temp", "pins the sensor to this many °C, -60 to 127"),
    (
        "transport",
        "bot: no UAS setting; uas: one with 32 streams even if the bridge has none",
    ),
    (
        "unit_attention",
        "1: the first command answers 06/29/00, power on or reset",
    ),
    (
        "unknown",
        "what an unknown opcode meets: sense (05/20/00) or stall (of the pipe, then that sense)",
    ),
    ("usb_serial", "serial number in the USB descriptors"),
];

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// GOOD status, all-zero data, nothing done.
    ZeroSuccess,
    /// Data is the CDB over and over, registers are those that were sent.
    Echo,
    /// No answer.
    Timeout,
    /// The bridge drops off the bus.
    Gone,
    /// Half of the data arrives, with GOOD status.
    Short,
    /// Sectors that carry a checksum carry a wrong one.
    BadChecksum,
    /// IDENTIFY data with the bytes of each word swapped.
    Swapped,
    /// Every sensor claims 127 °C.
    GarbageTemp,
    /// The answer comes after 61 seconds.
    Late,
    /// The bridge drops off the bus in the middle of it and comes back.
    Replug,
    /// The pipe is halted instead.
    Stall,
    /// The status carries the tag of another command.
    CswTag,
    /// The status claims that nothing was moved.
    CswResidue,
    /// The status says phase error.
    PhaseError,
    /// More bytes than the host has room for.
    Babble,
    /// No answer to this and to all that follows, until a reset.
    Hang,
    /// The first read after a vendor command hangs the bridge.
    DieAfterVendor,
}

/// Commands that a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    PassThrough,
    Read,
    Write,
    Any,
}

impl Scope {
    /// Whether the opcode is one of them.
    pub fn covers(self, opcode: u8) -> bool {
        let read = matches!(opcode, 0x08 | 0x28 | 0xa8 | 0x88);
        let write = matches!(opcode, 0x0a | 0x2a | 0xaa | 0x8a);
        match self {
            Self::PassThrough => matches!(opcode, 0x85 | 0xa1),
            Self::Read => read,
            Self::Write => write,
            Self::Any => true,
        }
    }
}

/// A fault, and when it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trouble {
    pub fault: Option<Fault>,
    pub scope: Scope,
    /// Commands that pass before it does.
    pub after: u64,
    /// How often it still strikes; `None` for ever.
    pub count: Option<u64>,
}

impl Trouble {
    /// What strikes a command with this opcode; counts.
    pub fn strike(&mut self, opcode: u8) -> Option<Fault> {
        let fault = self.fault?;
        if !self.scope.covers(opcode) {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        match &mut self.count {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        Some(fault)
    }
}

/// How the drive fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    Failing,
    Worn,
}

/// Options after parsing; what the profile decides has been put into the profile.
#[derive(Debug, Clone)]
pub struct Options {
    pub temp_c: Option<i8>,
    pub power: Mode,
    pub trouble: Trouble,
    pub health: Health,
    pub becoming_ready: u32,
    pub unit_attention: bool,
    pub keep_payload: bool,
    pub seed: Option<u64>,
}

/// Reads `PROFILE[,option=value...]`.
pub fn parse(spec: &str) -> Result<(Profile, Options), SpecError> {
    let mut words = spec.split(',');
    let mut profile = profiles::load(words.next().unwrap_or_default())?;
    let mut options = Options {
        temp_c: None,
        power: Mode::Active,
        trouble: Trouble::default(),
        health: Health::Good,
        becoming_ready: 0,
        unit_attention: false,
        keep_payload: true,
        seed: None,
    };
    let mut pairs = Vec::new();
    for word in words {
        let Some(pair) = word.split_once('=') else {
            return Err(SpecError {
                why: format!("option {word:?} has no value; write option=value"),
            });
        };
        pairs.push(pair);
    }
    // A bridge brings habits of its own; the other options change those, wherever they stand.
    pairs.sort_by_key(|(key, _)| *key != "bridge");
    for (key, value) in pairs {
        apply(&mut profile, &mut options, key, value)?;
    }
    Ok((profile, options))
}

fn apply(profile: &mut Profile, options: &mut Options, key: &str, value: &str) -> Result<(), SpecError> {
    match key {
        "ambient" => profile.ambient_c = number(key, value, -40.0, 80.0)?,
        "becoming_ready" => options.becoming_ready = number(key, value, 0, 1000)?,
        "bridge" => profiles::put_behind(profile, value)?,
        "ckcond" => {
            profile.bridge.ckcond = word(
                key,
                value,
                &[
                    ("honour", CkCond::Honour),
                    ("ignore", CkCond::Ignore),
                    ("empty", CkCond::Empty),
                    ("refuse", CkCond::Refuse),
                ],
            )?;
        }
        "ext" => profile.bridge.ext = word(key, value, &[("0", false), ("1", true)])?,
        "fault" => options.trouble.fault = Some(word(key, value, FAULTS)?),
        "fault_after" => options.trouble.after = number(key, value, 0, u64::MAX)?,
        "fault_count" => options.trouble.count = Some(number(key, value, 0, u64::MAX)?),
        "fault_on" => options.trouble.scope = word(key, value, SCOPES)?,
        "health" => {
            options.health = word(
                key,
                value,
                &[
                    ("good", Health::Good),
                    ("failing", Health::Failing),
                    ("worn", Health::Worn),
                ],
            )?;
        }
        "log_temperature" => {
            profile.bridge.log_temperature = word(key, value, &[("0", false), ("1", true)])?;
        }
        "payload" => options.keep_payload = word(key, value, &[("keep", true), ("drop", false)])?,
        "power" => {
            options.power = word(
                key,
                value,
                &[
                    ("active", Mode::Active),
                    ("idle", Mode::Idle),
                    ("standby", Mode::Standby),
                    ("sleep", Mode::Sleep),
                ],
            )?;
        }
        "sat" => {
            profile.bridge.sat = word(
                key,
                value,
                &[
                    ("both", Sat::Both),
                    ("16", Sat::Only16),
                    ("12", Sat::Only12),
                    ("none", Sat::None),
                ],
            )?;
        }
        "seed" => options.seed = Some(number(key, value, 0, u64::MAX)?),
        "sense" => {
            profile.bridge.sense = word(
                key,
                value,
                &[
                    ("descriptor", SenseFormat::Descriptor),
                    ("fixed", SenseFormat::Fixed),
                    ("empty", SenseFormat::Empty),
                ],
            )?;
        }
        "sense_cap" => {
            profile.bridge.sense_cap = word(
                key,
                value,
                &[
                    ("full", SenseCap::Full),
                    ("18", SenseCap::Eighteen),
                    ("learn", SenseCap::Learn),
                ],
            )?;
        }
        "serial" => {
            let good = !value.is_empty() && value.len() <= 20 && value.bytes().all(|b| b.is_ascii_graphic());
            if !good {
                return Err(SpecError {
                    why: "serial takes 1 to 20 printable ASCII characters".to_owned(),
                });
            }
            match &mut profile.drive {
                Some(drive) => drive.serial = value.to_owned(),
                None => profile.usb.serial = value.to_owned(),
            }
        }
        "speed" => {
            profile.usb.speed_mbit_s = word(key, value, &[("480", 480), ("5000", 5000), ("10000", 10_000)])?;
        }
        "temp" => options.temp_c = Some(number(key, value, -60, 127)?),
        "transport" => match (value, profile.usb.uas) {
            ("bot", _) => profile.usb.uas = None,
            ("uas", Some(_)) => {}
            ("uas", None) => {
                profile.usb.uas = Some(UasEndpoints {
                    command: 0x04,
                    status: 0x83,
                    data_in: 0x81,
                    data_out: 0x02,
                    streams: 32,
                });
            }
            _ => {
                return Err(SpecError {
                    why: format!("transport takes bot, uas, not {value:?}"),
                });
            }
        },
        "unit_attention" => options.unit_attention = word(key, value, &[("0", false), ("1", true)])?,
        "unknown" => {
            profile.bridge.unknown = word(
                key,
                value,
                &[("sense", Unknown::Sense), ("stall", Unknown::Stall)],
            )?;
        }
        "usb_serial" => {
            let good = value.len() <= 60 && value.bytes().all(|b| b.is_ascii_graphic());
            if !good {
                return Err(SpecError {
                    why: "usb_serial takes up to 60 printable ASCII characters".to_owned(),
                });
            }
            value.clone_into(&mut profile.usb.serial);
        }
        other => {
            let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            return Err(SpecError {
                why: format!("no option {other:?}; there are: {}", known.join(", ")),
            });
        }
    }
    Ok(())
}

/// The words of `fault=`.
const FAULTS: &[(&str, Fault)] = &[
    ("zero-success", Fault::ZeroSuccess),
    ("echo", Fault::Echo),
    ("timeout", Fault::Timeout),
    ("late", Fault::Late),
    ("gone", Fault::Gone),
    ("replug", Fault::Replug),
    ("short", Fault::Short),
    ("bad-checksum", Fault::BadChecksum),
    ("swapped", Fault::Swapped),
    ("garbage-temp", Fault::GarbageTemp),
    ("stall", Fault::Stall),
    ("csw-tag", Fault::CswTag),
    ("csw-residue", Fault::CswResidue),
    ("phase-error", Fault::PhaseError),
    ("babble", Fault::Babble),
    ("hang", Fault::Hang),
    ("die-after-vendor", Fault::DieAfterVendor),
];

/// The words of `fault_on=`.
const SCOPES: &[(&str, Scope)] = &[
    ("pass-through", Scope::PassThrough),
    ("read", Scope::Read),
    ("write", Scope::Write),
    ("any", Scope::Any),
];

fn word<T: Copy>(key: &str, value: &str, known: &[(&str, T)]) -> Result<T, SpecError> {
    known
        .iter()
        .find(|(name, _)| *name == value)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            SpecError {
                why: format!("{key} takes {}, not {value:?}", names.join(", ")),
            }
        })
}

fn number<T: FromStr + PartialOrd + std::fmt::Display>(
    key: &str,
    value: &str,
    low: T,
    high: T,
) -> Result<T, SpecError> {
    match value.parse::<T>() {
        Ok(n) if n >= low && n <= high => Ok(n),
        _ => Err(SpecError {
            why: format!("{key} takes a number from {low} to {high}, not {value:?}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_checked_and_the_known_ones_named() {
        let (profile, options) = parse("hdd,temp=-5,power=standby,serial=X1,sat=12,fault=echo").unwrap();
        assert_eq!(options.temp_c, Some(-5));
        assert_eq!(options.power, Mode::Standby);
        assert_eq!(options.trouble.fault, Some(Fault::Echo));
        assert_eq!(profile.bridge.sat, Sat::Only12);
        assert_eq!(profile.drive.unwrap().serial, "X1");
        for (bad, hint) in [
            ("", "there are: asm1051-usb2"),
            ("hdd,tmp=3", "becoming_ready"),
            ("hdd,temp=200", "-60 to 127"),
            ("hdd,temp=nan", "-60 to 127"),
            ("hdd,ambient=nan", "-40 to 80"),
            ("hdd,sat=13", "both, 16, 12, none"),
            ("hdd,standby", "option=value"),
            ("hdd,serial=", "1 to 20"),
        ] {
            let why = parse(bad).unwrap_err().why;
            assert!(why.contains(hint), "{bad}: {why}");
        }
    }

    #[test]
    fn every_documented_option_is_taken() {
        let mut sorted: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, OPTIONS.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        for (name, _) in OPTIONS {
            let why = parse(&format!("hdd,{name}=~")).err().map(|e| e.why);
            assert!(
                !why.as_deref().unwrap_or_default().contains("no option"),
                "{name}"
            );
        }
    }
}
