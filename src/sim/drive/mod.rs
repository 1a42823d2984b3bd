//! An ATA drive at register level: a taskfile in, registers and data out.

mod capacity;
mod devstat;
mod errors;
mod identify;
mod logs;
pub mod power;
mod sct;
mod selftest;
mod smart;
pub mod transfer;

use std::collections::BTreeMap;
use std::time::Duration;

use self::capacity::Limit;
use self::errors::ErrorLog;
use self::power::{Mode, Power};
use self::sct::Sct;
use self::smart::Smart;
use super::heat::{Heat, HeatSetup};
use super::media::Media;
use super::profiles::{DriveProfile, Profile};
use super::rng::Rng;
use super::spec::{Fault, Health, Options};
use super::speed::{Setup, Speed};

/// Device ready, seek complete.
const READY: u8 = 0x50;
/// The same with ERR.
const FAILED: u8 = 0x51;
/// Command aborted.
const ABRT: u8 = 0x04;
/// Address not found.
const IDNF: u8 = 0x10;
/// Uncorrectable data.
const UNC: u8 = 0x40;
/// Sectors per block of READ and WRITE MULTIPLE at power-on, and at most.
const MULTIPLE: u16 = 16;
/// Advanced power management at power-on: the lowest level that never spins down.
const APM_LEVEL: u8 = 0x80;

/// The registers that a host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taskfile {
    pub features: u16,
    pub count: u16,
    /// 48 bits; a 28-bit command has its top four in `device`.
    pub lba: u64,
    pub device: u8,
    pub command: u8,
}

/// The registers that a host reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    pub error: u8,
    pub count: u16,
    pub lba: u64,
    pub device: u8,
    pub status: u8,
}

impl Registers {
    /// Whether ERR or DF is set.
    pub fn failed(&self) -> bool {
        self.status & 0x21 != 0
    }
}

/// How a command moves its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    NonData,
    PioIn,
    PioOut,
    DmaIn,
    DmaOut,
}

/// What a command came to.
#[derive(Debug)]
pub struct Outcome {
    pub registers: Registers,
    pub data: Vec<u8>,
}

/// Counters that live.
#[derive(Debug, Default)]
struct Counters {
    power_on_minutes: u64,
    power_cycles: u64,
    sectors_written: u64,
    sectors_read: u64,
    write_commands: u64,
    read_commands: u64,
    unsafe_shutdowns: u64,
    percent_used: u64,
    reallocated: u64,
    spin_ups: u64,
    load_cycles: u64,
    crc_errors: u64,
    resets: u64,
}

/// The drive.
#[derive(Debug)]
pub struct AtaDrive {
    profile: DriveProfile,
    physical_sector_bytes: u64,
    medium: Media,
    speed: Speed,
    power: Power,
    smart: Smart,
    sct: Sct,
    counters: Counters,
    health: Health,
    pinned_c: Option<i8>,
    garbage: bool,
    held: Duration,
    write_cache: bool,
    look_ahead: bool,
    /// Advanced power management, where it is there and on.
    apm: Option<u8>,
    /// Sectors per block of READ and WRITE MULTIPLE; 0: they are off.
    multiple: u16,
    /// READ BUFFER and WRITE BUFFER.
    buffer: Vec<u8>,
    limit: Limit,
    errors: ErrorLog,
    /// Host vendor logs 80h to 9Fh, by log and page.
    host_logs: BTreeMap<(u8, u16), Vec<u8>>,
    /// The last command.
    before: u8,
    powered_at: Duration,
    next_lba: u64,
    now: Duration,
}

/// The speed and heat model of a profile.
pub fn speed_model(profile: &Profile, options: &Options) -> Speed {
    let rng = match options.seed {
        Some(seed) => Rng::from_seed(seed),
        None => Rng::from_name(&profile.name),
    };
    let heat = profile.thermal.clone().map(|thermal| {
        let asleep = matches!(options.power, Mode::Standby | Mode::Sleep);
        let start_w = match thermal.standby_w {
            Some(standby) if asleep => standby,
            _ => thermal.idle_w,
        };
        Heat::new(HeatSetup {
            thermal,
            levels: profile.throttle.clone(),
            ambient_c: profile.ambient_c,
            start_w,
        })
    });
    let medium = &profile.medium;
    let setup = Setup {
        rates: medium.rates,
        files_mb_s: medium.files_mb_s,
        compress_gain: medium.compress_gain,
        cache: medium.cache.clone(),
        stalls: medium.stalls.clone(),
        random: medium.random.clone(),
        noise: profile.noise.clone(),
        link_w: medium.link_w,
    };
    Speed::new(setup, rng, heat)
}

impl AtaDrive {
    /// A drive as the profile and the options say.
    pub fn new(profile: &Profile, drive: DriveProfile, medium: Media, options: &Options) -> Self {
        let c = &drive.counters;
        let counters = Counters {
            power_on_minutes: c.power_on_minutes,
            power_cycles: c.power_cycles,
            sectors_written: c.sectors_written,
            sectors_read: c.sectors_read,
            write_commands: c.sectors_written / 128,
            read_commands: c.sectors_read / 128,
            unsafe_shutdowns: c.unsafe_shutdowns,
            percent_used: c.percent_used,
            reallocated: c.reallocated,
            spin_ups: c.spin_ups,
            load_cycles: c.load_cycles,
            crc_errors: c.crc_errors,
            resets: 0,
        };
        let garbage = options.trouble.fault == Some(Fault::GarbageTemp);
        Self {
            physical_sector_bytes: u64::from(profile.medium.physical_sector_bytes),
            medium,
            speed: speed_model(profile, options),
            power: Power::new(
                options.power,
                drive.standby_timer_s.map(Duration::from_secs),
                Duration::from_millis(drive.spin_up_ms),
            ),
            smart: Smart::new(),
            sct: Sct::new(),
            counters,
            health: options.health,
            pinned_c: options.temp_c,
            garbage,
            held: Duration::ZERO,
            write_cache: true,
            look_ahead: true,
            apm: (drive.rotation != 1).then_some(APM_LEVEL),
            multiple: MULTIPLE,
            buffer: vec![0; 512],
            limit: Limit::default(),
            errors: ErrorLog::default(),
            host_logs: BTreeMap::new(),
            before: 0,
            powered_at: Duration::ZERO,
            next_lba: 0,
            now: Duration::ZERO,
            profile: drive,
        }
    }

    /// Lets time pass up to `now`: cooling, history samples, the standby timer, self-tests.
    pub fn catch_up(&mut self, now: Duration) {
        self.sct.skip_towards(now);
        while self.now < now {
            let mut next = now.min(self.sct.next_sample().max(self.now));
            if let Some(at) = self.power.standby_at() {
                next = next.min(at.max(self.now));
            }
            self.speed
                .rest(next.saturating_sub(self.now), self.power.asleep());
            self.now = next;
            if self.power.standby_at().is_some_and(|at| at <= next) && !self.smart.self_test_running() {
                self.power.enter(Mode::Standby, next);
            } else if self.power.standby_at().is_some_and(|at| at <= next) {
                self.power.enter(Mode::Active, next);
            }
            if self.sct.next_sample() <= next {
                let celsius = self.temperature_c();
                self.sct.sample(celsius);
            }
            self.settle_self_test();
        }
    }

    /// The drive's clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Lets the answer to the present command wait, without keeping the drive from a reset meanwhile.
    fn hold(&mut self, how_long: Duration) {
        self.held = self.held.saturating_add(how_long);
    }

    /// How long the answer to the command that was just run has to wait.
    pub fn take_held(&mut self) -> Duration {
        std::mem::take(&mut self.held)
    }

    fn spend(&mut self, how_long: Duration) {
        self.catch_up(self.now.saturating_add(how_long));
    }

    fn wake(&mut self) {
        let took = self.power.wake(self.now);
        self.spend(took);
    }

    /// Spin-ups that a command caused.
    pub fn wakes(&self) -> u64 {
        self.power.wakes()
    }

    /// The power state.
    pub fn mode(&self) -> Mode {
        self.power.mode()
    }

    /// Whether the medium is at rest.
    pub fn asleep(&self) -> bool {
        self.power.asleep()
    }

    /// The medium.
    pub fn medium(&self) -> &Media {
        &self.medium
    }

    /// The medium, to change it without a command.
    pub fn medium_mut(&mut self) -> &mut Media {
        &mut self.medium
    }

    /// Pins the sensor, or lets it follow the thermal model again.
    pub fn pin_temperature(&mut self, celsius: Option<i8>) {
        self.pinned_c = celsius;
    }

    /// Changes the air around it, in °C; false without a thermal model.
    pub fn set_ambient(&mut self, celsius: f64) -> bool {
        self.speed.set_ambient(celsius)
    }

    /// Its speed model.
    pub fn speed(&self) -> &Speed {
        &self.speed
    }

    /// Its speed model, to tell it of the load.
    pub fn speed_mut(&mut self) -> &mut Speed {
        &mut self.speed
    }

    /// Changes how the drive fares.
    pub fn set_health(&mut self, health: Health) {
        self.health = health;
    }

    /// Brings it to a power state without a command; that is no wake.
    pub fn force_power(&mut self, mode: Mode) {
        self.power.enter(mode, self.now);
    }

    /// Whether the volatile write cache and look-ahead are on.
    pub fn caching(&self) -> (bool, bool) {
        (self.write_cache_on(), self.look_ahead)
    }

    /// Another drive of the same model is in its place: only the serial number differs.
    pub fn become_a_twin(&mut self) {
        self.profile.serial = format!("TWIN{}", self.profile.serial).chars().take(20).collect();
    }

    /// The static part.
    pub fn profile(&self) -> &DriveProfile {
        &self.profile
    }

    /// World wide name.
    pub fn wwn(&self) -> u64 {
        u64::from_str_radix(&self.profile.wwn, 16).unwrap_or_default()
    }

    /// IDENTIFY DEVICE data without asking, as a bridge caches it.
    pub fn identify_page(&self) -> Vec<u8> {
        identify::page(self)
    }

    /// What the sensor shows, if there is one.
    pub fn temperature_c(&self) -> Option<i8> {
        self.shown_c()
            .or_else(|| Some(self.speed.heat.as_ref()?.sensor_c().clamp(-127.0, 127.0) as i8))
    }

    /// What is shown whatever the model says.
    fn shown_c(&self) -> Option<i8> {
        if self.garbage { Some(127) } else { self.pinned_c }
    }

    /// Whether every sensor claims 127 °C.
    pub fn set_garbage(&mut self, garbage: bool) {
        self.garbage = garbage;
    }

    fn extremes_c(&self) -> (i8, i8) {
        match (self.shown_c(), &self.speed.heat) {
            (Some(pinned), _) => (pinned, pinned),
            (None, Some(heat)) => {
                let (low, high) = heat.extremes_c();
                (low.clamp(-127.0, 127.0) as i8, high.clamp(-127.0, 127.0) as i8)
            }
            (None, None) => (0, 0),
        }
    }

    fn power_on_hours(&self) -> u64 {
        (self.counters.power_on_minutes + self.now.as_secs() / 60) / 60
    }

    fn percent_used(&self) -> u64 {
        match self.health {
            Health::Worn => self.counters.percent_used.max(112),
            _ => self.counters.percent_used,
        }
    }

    fn reallocated(&self) -> u64 {
        match self.health {
            Health::Failing => self.counters.reallocated.max(1840),
            _ => self.counters.reallocated,
        }
    }

    /// A hardware reset: what SET MAX ADDRESS changed for the moment is gone.
    pub fn hard_reset(&mut self) {
        self.limit.hard_reset();
        self.reset();
    }

    /// Power goes and comes back. What the write cache had taken is kept: this drive's cache survives.
    pub fn power_cycle(&mut self) {
        if !self.power.asleep() {
            self.counters.unsafe_shutdowns += 1;
        }
        self.interrupt_self_test();
        self.counters.power_cycles += 1;
        self.counters.spin_ups += 1;
        self.powered_at = self.now;
        self.limit.power_on();
        self.errors.power_on();
        self.sct.power_on(self.now);
        self.write_cache = true;
        self.look_ahead = true;
        self.apm = self.apm.map(|_| APM_LEVEL);
        self.multiple = MULTIPLE;
        self.buffer = vec![0; 512];
        self.before = 0;
        self.next_lba = 0;
        self.power.power_on(self.now);
        self.spend(Duration::from_millis(self.profile.spin_up_ms));
    }

    /// A software reset, or the end of sleep.
    fn reset(&mut self) {
        self.counters.resets += 1;
        self.before = 0;
        self.interrupt_self_test();
        if self.power.mode() == Mode::Sleep {
            self.power.enter(Mode::Standby, self.now);
        }
        self.spend(Duration::from_millis(400));
    }

    /// How the command moves data; `None` for a command that is not there.
    pub fn nature(&self, tf: &Taskfile) -> Option<Nature> {
        Some(match tf.command {
            0xec | 0x20 | 0x24 | 0xc4 | 0x29 | 0xe4 => Nature::PioIn,
            0xc8 | 0x25 => Nature::DmaIn,
            0x30 | 0x34 | 0xc5 | 0x39 | 0xce | 0xe8 => Nature::PioOut,
            0xca | 0x35 | 0x3d => Nature::DmaOut,
            0x2f if self.profile.gpl => Nature::PioIn,
            0x47 if self.profile.gpl => Nature::DmaIn,
            0x3f if self.profile.gpl => Nature::PioOut,
            0x57 if self.profile.gpl => Nature::DmaOut,
            0x06 if self.profile.trim.is_some() => Nature::DmaOut,
            0xb0 => match tf.features & 0xff {
                0xd0 | 0xd1 | 0xd5 => Nature::PioIn,
                0xd6 => Nature::PioOut,
                0xd2..=0xd4 | 0xd8..=0xdb => Nature::NonData,
                _ => return None,
            },
            0xe5 | 0x98 | 0xe0 | 0x94 | 0xe1 | 0x95 | 0xe2 | 0x96 | 0xe3 | 0x97 | 0xe6 | 0x99 | 0xe7
            | 0xea | 0x40 | 0x42 | 0x45 | 0xc6 | 0xef => Nature::NonData,
            0xf8 | 0x27 | 0x37 if !self.profile.amac => Nature::NonData,
            // The other subcommands set and ask for passwords, which this drive does not know.
            0xf9 if !self.profile.amac && tf.features & 0xff == 0 => Nature::NonData,
            0x78 if self.profile.amac => Nature::NonData,
            _ => return None,
        })
    }

    /// Runs one command. The drive's clock moves by what it takes.
    pub fn execute(&mut self, tf: &Taskfile, data_out: &[u8]) -> Outcome {
        if self.power.mode() == Mode::Sleep {
            self.reset();
        }
        self.errors.hear(tf, self.now.saturating_sub(self.powered_at));
        let before = std::mem::replace(&mut self.before, tf.command);
        let outcome = self.run(tf, data_out, before);
        if outcome.registers.failed() {
            self.note_error(&outcome.registers);
        }
        outcome
    }

    fn run(&mut self, tf: &Taskfile, data_out: &[u8], before: u8) -> Outcome {
        if self.nature(tf).is_none() {
            return abort(tf);
        }
        match tf.command {
            0xec => done(tf, identify::page(self)),
            0xb0 => self.smart_command(tf, data_out),
            0x2f | 0x47 => {
                let log = tf.lba as u8;
                let page = (tf.lba >> 8 & 0xff | tf.lba >> 24 & 0xff00) as u16;
                self.log_read(tf, true, log, page, tf.count)
            }
            0x3f | 0x57 => {
                let page = (tf.lba >> 8 & 0xff | tf.lba >> 24 & 0xff00) as u16;
                self.log_write(tf, true, tf.lba as u8, page, data_out)
            }
            0xe5 | 0x98 => {
                let mut outcome = done(tf, Vec::new());
                outcome.registers.count = self.power.check_power_mode();
                outcome
            }
            0xe0 | 0x94 => {
                self.abort_self_test();
                self.go(tf, Mode::Standby)
            }
            0xe1 | 0x95 => self.go(tf, Mode::Idle),
            0xe2 | 0x96 | 0xe3 | 0x97 => {
                self.power.set_timer(tf.count as u8);
                let mode = if matches!(tf.command, 0xe2 | 0x96) {
                    Mode::Standby
                } else {
                    Mode::Idle
                };
                self.go(tf, mode)
            }
            0xe6 | 0x99 => {
                self.abort_self_test();
                self.go(tf, Mode::Sleep)
            }
            0xf8 | 0x27 => self.native_max(tf),
            0xf9 | 0x37 => self.set_max(tf, before),
            0x78 => self.accessible_max(tf),
            0xef => self.set_features(tf),
            0xc6 => match tf.count & 0xff {
                count if count == 0 || (count <= MULTIPLE && count.is_power_of_two()) => {
                    self.multiple = count;
                    done(tf, Vec::new())
                }
                _ => abort(tf),
            },
            0xe4 => done(tf, self.buffer.clone()),
            0xe8 => match data_out.get(..512) {
                Some(data) => {
                    self.buffer = data.to_vec();
                    done(tf, Vec::new())
                }
                None => abort(tf),
            },
            0x06 => self.trim(tf, data_out),
            _ => self.media_command(tf, data_out),
        }
    }

    fn go(&mut self, tf: &Taskfile, mode: Mode) -> Outcome {
        if mode == Mode::Idle {
            self.wake();
        }
        self.power.enter(mode, self.now);
        done(tf, Vec::new())
    }

    fn set_features(&mut self, tf: &Taskfile) -> Outcome {
        match tf.features & 0xff {
            0x02 => self.write_cache = true,
            0x82 => self.write_cache = false,
            0xaa => self.look_ahead = true,
            0x55 => self.look_ahead = false,
            // Transfer modes: PIO default, PIO with flow control 0 to 4, multiword DMA 0 to 2, Ultra DMA 0 to 6.
            0x03 => match tf.count & 0xff {
                0x00 | 0x01 | 0x08..=0x0c | 0x20..=0x22 | 0x40..=0x46 => {}
                _ => return abort(tf),
            },
            0x05 if self.profile.rotation != 1 && (1..=0xfe).contains(&(tf.count & 0xff)) => {
                self.apm = Some(tf.count as u8);
            }
            0x85 if self.profile.rotation != 1 => self.apm = None,
            _ => return abort(tf),
        }
        done(tf, Vec::new())
    }
}

/// Puts an address where the command has it: 48 bits, or 28 with the top four in the device register.
fn put_lba(registers: &mut Registers, lba: u64, wide: bool) {
    if wide {
        registers.lba = lba & 0xffff_ffff_ffff;
    } else {
        registers.lba = lba & 0x00ff_ffff;
        registers.device = registers.device & 0xf0 | (lba >> 24 & 0x0f) as u8;
    }
}

fn done(tf: &Taskfile, data: Vec<u8>) -> Outcome {
    Outcome {
        registers: Registers {
            error: 0,
            count: 0,
            lba: tf.lba,
            device: tf.device,
            status: READY,
        },
        data,
    }
}

fn fail(tf: &Taskfile, error: u8, lba: u64) -> Outcome {
    Outcome {
        registers: Registers {
            error,
            count: tf.count,
            lba,
            device: tf.device,
            status: FAILED,
        },
        data: Vec::new(),
    }
}

fn abort(tf: &Taskfile) -> Outcome {
    fail(tf, ABRT, tf.lba)
}
