//! Power states of an ATA drive, its standby timer, and what wakes it.
//!
//! The model: reading, writing or trimming the medium, starting a self-test and those SMART sectors that live on the medium
//! (READ DATA, READ THRESHOLDS, all logs but E0h, written ones too) spin a drive up. IDENTIFY DEVICE, CHECK POWER MODE, SMART
//! RETURN STATUS, SET FEATURES, READ and WRITE BUFFER, READ NATIVE MAX, SET MAX and the SCT status sector are answered from
//! memory and do not; nor does FLUSH CACHE, since a drive writes its cache out before it goes to rest. A sleeping drive hears only a reset: the bridge gives it one, which brings
//! it to standby, and then sends the command.
//!
//! The standby timer runs from the last command that used the medium; polling SMART READ DATA therefore keeps a drive awake.

use std::time::Duration;

/// Power states as CHECK POWER MODE tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Active,
    Idle,
    Standby,
    Sleep,
}

impl Mode {
    /// The word that options and reports use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::Standby => "standby",
            Self::Sleep => "sleep",
        }
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Power {
    mode: Mode,
    timer: Option<Duration>,
    /// The timer as power-on sets it.
    default_timer: Option<Duration>,
    last_use: Duration,
    spin_up: Duration,
    wakes: u64,
}

impl Power {
    /// A drive in `mode` whose standby timer starts now.
    pub fn new(mode: Mode, timer: Option<Duration>, spin_up: Duration) -> Self {
        Self {
            mode,
            timer,
            default_timer: timer,
            last_use: Duration::ZERO,
            spin_up,
            wakes: 0,
        }
    }

    /// The present state.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the medium is at rest.
    pub fn asleep(&self) -> bool {
        matches!(self.mode, Mode::Standby | Mode::Sleep)
    }

    /// How often a command had to spin the drive up.
    pub fn wakes(&self) -> u64 {
        self.wakes
    }

    /// When the standby timer will run out, if it is running.
    pub fn standby_at(&self) -> Option<Duration> {
        match self.mode {
            Mode::Active | Mode::Idle => self.timer.map(|t| self.last_use.saturating_add(t)),
            Mode::Standby | Mode::Sleep => None,
        }
    }

    /// Goes to a state at a command's word, or because the timer ran out.
    pub fn enter(&mut self, mode: Mode, now: Duration) {
        self.mode = mode;
        self.last_use = now;
    }

    /// Power has come back: the drive spins up without being asked, and its timer is what it was from the factory.
    pub fn power_on(&mut self, now: Duration) {
        self.timer = self.default_timer;
        self.enter(Mode::Active, now);
    }

    /// Sets the standby timer from the count of STANDBY and IDLE (ACS, "Standby timer periods").
    pub fn set_timer(&mut self, count: u8) {
        self.timer = match count {
            0 => None,
            n @ 1..=240 => Some(Duration::from_secs(5 * u64::from(n))),
            n @ 241..=251 => Some(Duration::from_secs(1800 * u64::from(n - 240))),
            252 => Some(Duration::from_secs(21 * 60)),
            253 => Some(Duration::from_secs(8 * 3600)),
            254 => None,
            255 => Some(Duration::from_secs(21 * 60 + 15)),
        };
    }

    /// Gets ready for the medium; returns how long that takes.
    pub fn wake(&mut self, now: Duration) -> Duration {
        let took = if self.asleep() {
            self.wakes += 1;
            self.spin_up
        } else {
            Duration::ZERO
        };
        self.mode = Mode::Active;
        self.last_use = now.saturating_add(took);
        took
    }

    /// What CHECK POWER MODE puts into the count register.
    pub fn check_power_mode(&self) -> u16 {
        match self.mode {
            Mode::Active => 0xff,
            Mode::Idle => 0x80,
            Mode::Standby | Mode::Sleep => 0x00,
        }
    }
}
