//! What follows `sim:`: a profile and options.

mod options;

pub use options::OPTIONS;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::SpecError;
use super::drive::power::Mode;
use super::media::{Reach, Setup, Store, Trimmed, Written};
use super::profiles::{
    self, CkCond, DriveProfile, Profile, Sat, SenseCap, SenseFormat, TrimProfile, UasEndpoints, Unknown,
};
use super::rng::Rng;

/// Blocks that a bridge may claim: times eight they still fit into the 48 bits of an ATA address.
const CAPACITY_MAX: u64 = 1 << 45;

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
    /// A write of several sectors stores the first half.
    TornWrite,
    /// A write stores nothing.
    LostWrite,
    /// An internal error of the target; nothing is done.
    Error,
}

/// Commands that a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    PassThrough,
    Read,
    Write,
    Trim,
    Any,
}

impl Scope {
    /// Whether the command is one of them; `trims` says whether it discards.
    pub fn covers(self, opcode: u8, trims: bool) -> bool {
        let read = matches!(opcode, 0x08 | 0x28 | 0xa8 | 0x88);
        let write = matches!(opcode, 0x0a | 0x2a | 0xaa | 0x8a);
        match self {
            Self::PassThrough => matches!(opcode, 0x85 | 0xa1),
            Self::Read => read,
            Self::Write => write,
            Self::Trim => trims,
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
    /// What strikes a command with this opcode, which may be one that writes to the medium or discards; counts.
    pub fn strike(&mut self, opcode: u8, writes: bool, trims: bool) -> Option<Fault> {
        let fault = self.fault?;
        let covered = match fault {
            Fault::TornWrite | Fault::LostWrite => writes,
            _ => self.scope.covers(opcode, trims),
        };
        if !covered {
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
    pub payload: Payload,
    pub store: Option<PathBuf>,
    /// Set where TRIM does not do what the drive claims.
    pub trim_reach: Reach,
    pub bad: Vec<(u64, u64)>,
    pub capacity: Option<u64>,
    pub fake_4k: bool,
    pub encrypt: bool,
    pub shift_blocks: u64,
    pub swap_after: Option<u64>,
    /// Set where trimmed sectors read as something else than the drive claims.
    pub trim_shows: Option<Trimmed>,
    pub seed: Option<u64>,
}

/// What becomes of written data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    Keep,
    Virtual,
    Drop,
}

/// What TRIM does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrimHabit {
    Reads(Trimmed),
    Reaches(Reach),
    /// Claims zeroes and shows this.
    Shows(Trimmed),
}

impl Options {
    /// The medium that profile and options ask for.
    pub fn medium(&self, profile: &Profile) -> Result<Setup, SpecError> {
        let m = &profile.medium;
        let seed = self
            .seed
            .unwrap_or_else(|| Rng::from_name(&profile.name).next_u64());
        let store = match (&self.store, self.payload) {
            (Some(path), _) => file(path, m.sectors.saturating_mul(u64::from(m.logical_sector_bytes)))?,
            (None, Payload::Keep) => Store::memory(),
            (None, Payload::Virtual) => Store::Virtual(Written::new(seed)),
            (None, Payload::Drop) => Store::Nothing,
        };
        let claimed = match profile.drive.as_ref().and_then(|d| d.trim.as_ref()) {
            Some(claims) if claims.zeroes => Trimmed::Zeros,
            Some(claims) if claims.deterministic => Trimmed::Ones,
            _ => Trimmed::Old,
        };
        Ok(Setup {
            sectors: m.sectors,
            sector_bytes: m.logical_sector_bytes,
            store,
            trimmed: self.trim_shows.unwrap_or(claimed),
            reach: self.trim_reach,
            bad: self.bad.clone(),
            seed,
        })
    }
}

fn file(path: &Path, bytes: u64) -> Result<Store, SpecError> {
    Store::file(path, bytes).map_err(|e| SpecError {
        why: format!("store {}: {e}", path.display()),
    })
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
        payload: Payload::Keep,
        store: None,
        trim_reach: Reach::Exact,
        bad: Vec::new(),
        capacity: None,
        fake_4k: false,
        encrypt: false,
        shift_blocks: 0,
        swap_after: None,
        trim_shows: None,
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
    check(&profile, &options)?;
    Ok((profile, options))
}

/// What only the whole can tell.
fn check(profile: &Profile, options: &Options) -> Result<(), SpecError> {
    let sectors = profile.medium.sectors;
    let beyond = |(first, count): &(u64, u64)| first.checked_add(*count).is_none_or(|end| end > sectors);
    let why = if options.store.is_some() && options.payload != Payload::Keep {
        "store holds what is written, so payload can only be keep".to_owned()
    } else if options.fake_4k && profile.medium.logical_sector_bytes != 512 {
        "fake_4k needs a drive of 512-byte sectors".to_owned()
    } else if options.bad.iter().any(beyond) {
        format!("bad ends behind the last of {sectors} sectors")
    } else {
        return Ok(());
    };
    Err(SpecError { why })
}

fn apply(profile: &mut Profile, options: &mut Options, key: &str, value: &str) -> Result<(), SpecError> {
    match key {
        "amac" => {
            let amac = word(key, value, &[("0", false), ("1", true)])?;
            inner(profile, key)?.amac = amac;
        }
        "ambient" => profile.ambient_c = number(key, value, -40.0, 80.0)?,
        "bad" => {
            let extent = value.split_once('+').and_then(|(first, count)| {
                Some((first.parse().ok()?, count.parse().ok().filter(|n| *n > 0)?))
            });
            options.bad.push(extent.ok_or_else(|| SpecError {
                why: format!("bad takes LBA+COUNT, not {value:?}"),
            })?);
        }
        "becoming_ready" => options.becoming_ready = number(key, value, 0, 1000)?,
        "bridge" => profiles::put_behind(profile, value)?,
        "capacity" => options.capacity = Some(number(key, value, 1, CAPACITY_MAX)?),
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
        "encrypt" => options.encrypt = word(key, value, &[("0", false), ("1", true)])?,
        "shift" => options.shift_blocks = number(key, value, 0, CAPACITY_MAX)?,
        "swap_after" => options.swap_after = Some(number(key, value, 0, u64::MAX)?),
        "fake_4k" => options.fake_4k = word(key, value, &[("0", false), ("1", true)])?,
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
        "link" => link(profile, value)?,
        "log_temperature" => {
            profile.bridge.log_temperature = word(key, value, &[("0", false), ("1", true)])?;
        }
        "payload" => {
            options.payload = word(
                key,
                value,
                &[
                    ("keep", Payload::Keep),
                    ("virtual", Payload::Virtual),
                    ("drop", Payload::Drop),
                ],
            )?;
        }
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
        "store" if !value.is_empty() => options.store = Some(PathBuf::from(value)),
        "store" => {
            return Err(SpecError {
                why: "store takes the path of a file".to_owned(),
            });
        }
        "trim" => {
            let habit = word(
                key,
                value,
                &[
                    ("zero", TrimHabit::Reads(Trimmed::Zeros)),
                    ("ones", TrimHabit::Reads(Trimmed::Ones)),
                    ("keep", TrimHabit::Reads(Trimmed::Old)),
                    ("ignore", TrimHabit::Reaches(Reach::Nothing)),
                    ("neighbour", TrimHabit::Reaches(Reach::Neighbour)),
                    ("pages", TrimHabit::Reaches(Reach::Widened(8))),
                    ("wide", TrimHabit::Reaches(Reach::Widened(128))),
                    ("false-zero", TrimHabit::Shows(Trimmed::Ones)),
                ],
            )?;
            let trim = &mut inner(profile, key)?.trim;
            match habit {
                TrimHabit::Reads(reads_as) => {
                    *trim = Some(TrimProfile {
                        max_blocks: trim.as_ref().map_or(8, |t| t.max_blocks),
                        deterministic: reads_as != Trimmed::Old,
                        zeroes: reads_as == Trimmed::Zeros,
                    });
                }
                TrimHabit::Reaches(reach) => options.trim_reach = reach,
                TrimHabit::Shows(shown) => {
                    options.trim_shows = Some(shown);
                    *trim = Some(TrimProfile {
                        max_blocks: trim.as_ref().map_or(8, |t| t.max_blocks),
                        deterministic: true,
                        zeroes: true,
                    });
                }
            }
        }
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

/// Links that every profile knows: ceiling in MB/s, and what enumeration tells in Mbit/s.
const LINKS: &[(&str, (f64, u32))] = &[
    ("usb2", (35.5, 480)),
    ("usb3", (440.0, 5000)),
    ("usb10g", (850.0, 10_000)),
    ("usb20g", (2000.0, 20_000)),
];

/// Puts it on another link.
fn link(profile: &mut Profile, value: &str) -> Result<(), SpecError> {
    let medium = &mut profile.medium;
    if let Some(own) = medium.links.get(value) {
        medium.rates.link_mb_s = own.cap_mb_s;
        profile.usb.speed_mbit_s = own.speed_mbit_s;
        if let Some(random) = &mut medium.random {
            random.cmd_us = own.cmd_us;
        }
        return Ok(());
    }
    let (cap_mb_s, speed_mbit_s) = word("link", value, LINKS)?;
    medium.rates.link_mb_s = cap_mb_s;
    profile.usb.speed_mbit_s = speed_mbit_s;
    Ok(())
}

/// The words of `fault=`.
const FAULTS: &[(&str, Fault)] = &[
    ("error", Fault::Error),
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
    ("torn-write", Fault::TornWrite),
    ("lost-write", Fault::LostWrite),
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
    ("trim", Scope::Trim),
    ("pass-through", Scope::PassThrough),
    ("read", Scope::Read),
    ("write", Scope::Write),
    ("any", Scope::Any),
];

fn inner<'p>(profile: &'p mut Profile, key: &str) -> Result<&'p mut DriveProfile, SpecError> {
    let name = &profile.name;
    profile.drive.as_mut().ok_or_else(|| SpecError {
        why: format!("{key} is for an ATA drive, and {name} has none"),
    })
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
            ("hdd,bad=5", "LBA+COUNT"),
            ("hdd,capacity=0", "1 to 35184372088832"),
            ("hdd,bad=5+0", "LBA+COUNT"),
            ("hdd,bad=3907029168+1", "behind the last"),
            ("hdd-4kn,fake_4k=1", "512-byte"),
            ("stick,trim=zero", "stick has none"),
            ("ssd,payload=virtual,store=x", "only be keep"),
            ("ssd,store=/nowhere/at/all", "No such file"),
        ] {
            let why = crate::sim::Target::open(bad).unwrap_err().why;
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
