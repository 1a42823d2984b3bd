//! What follows `sim:`: a profile and options.

use std::str::FromStr;

use super::SpecError;
use super::drive::power::Mode;
use super::profiles::{self, CkCond, Profile, Sat, SenseCap, SenseFormat};

/// Options with what they do, in the order of their names.
pub const OPTIONS: &[(&str, &str)] = &[
    ("ambient", "air temperature in °C, -40 to 80"),
    (
        "becoming_ready",
        "the first N commands answer 02/04/01, becoming ready",
    ),
    (
        "ckcond",
        "CK_COND on success: honour, ignore (GOOD), empty (zero registers) or refuse (05/24/00)",
    ),
    (
        "fault",
        "on ATA PASS-THROUGH: zero-success, echo, timeout, gone, short, bad-checksum, swapped, garbage-temp",
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
    ("temp", "pins the sensor to this many °C, -60 to 127"),
    (
        "unit_attention",
        "1: the first command answers 06/29/00, power on or reset",
    ),
];

/// What goes wrong with ATA PASS-THROUGH.
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
    pub fault: Option<Fault>,
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
        fault: None,
        health: Health::Good,
        becoming_ready: 0,
        unit_attention: false,
        keep_payload: true,
        seed: None,
    };
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(SpecError {
                why: format!("option {word:?} has no value; write option=value"),
            });
        };
        apply(&mut profile, &mut options, key, value)?;
    }
    Ok((profile, options))
}

fn apply(profile: &mut Profile, options: &mut Options, key: &str, value: &str) -> Result<(), SpecError> {
    match key {
        "ambient" => profile.ambient_c = number(key, value, -40.0, 80.0)?,
        "becoming_ready" => options.becoming_ready = number(key, value, 0, 1000)?,
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
        "fault" => {
            options.fault = Some(word(
                key,
                value,
                &[
                    ("zero-success", Fault::ZeroSuccess),
                    ("echo", Fault::Echo),
                    ("timeout", Fault::Timeout),
                    ("gone", Fault::Gone),
                    ("short", Fault::Short),
                    ("bad-checksum", Fault::BadChecksum),
                    ("swapped", Fault::Swapped),
                    ("garbage-temp", Fault::GarbageTemp),
                ],
            )?);
        }
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
        "temp" => options.temp_c = Some(number(key, value, -60, 127)?),
        "unit_attention" => options.unit_attention = word(key, value, &[("0", false), ("1", true)])?,
        other => {
            let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            return Err(SpecError {
                why: format!("no option {other:?}; there are: {}", known.join(", ")),
            });
        }
    }
    Ok(())
}

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
        assert_eq!(options.fault, Some(Fault::Echo));
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
