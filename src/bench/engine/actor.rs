//! Who takes part in a run, and what they say to each other.
//!
//! Actors are pure: a driver feeds them events and the time, and carries out what they answer. For a simulated device the
//! driver is one heap of events on the virtual clock; for a real one it would poll the kernel, with the same actors above.

use std::time::Duration;

use crate::bench::run::Ending;
use crate::bench::series::Op;

/// One read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Names it until it is completed.
    pub id: u64,
    /// [`Op::Read`] or [`Op::Write`].
    pub op: Op,
    /// Where it starts on the medium.
    pub offset_bytes: u64,
    /// Bytes that count; the carrier rounds them up to whole blocks.
    pub len_bytes: u64,
    /// Requests of the workload that travel in it: neighbours of a deep sequential queue go as one.
    pub merged: u32,
    /// The content that it writes, or must find, by its name; absent: nobody looks at it again.
    pub content: Option<u64>,
}

/// What became of a temperature reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// °C and the source's word; the reason in words where there is none.
    pub result: Result<(f64, &'static str), String>,
    /// How long it took, waiting for its turn left out.
    pub took: Duration,
    /// The drive's own limit, in °C, if it tells one.
    pub limit_c: Option<f64>,
}

/// What happens to an actor.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The first one.
    Start,
    /// A time that somebody asked for has come.
    Wake,
    /// A request came back; `ok` unless its status was an error.
    Completed {
        /// Which.
        id: u64,
        /// Whether the bytes were moved.
        ok: bool,
    },
    /// A flush came back.
    Flushed,
    /// A stage of the plan begins or has ended.
    StageEdge,
    /// A temperature was read, or was not.
    Temperature(Taken),
    /// The run is to end as soon as possible.
    Stop(Ending),
    /// The device is gone.
    Gone,
}

/// What an actor wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this request.
    Submit(Request),
    /// Send a flush.
    Flush,
    /// Send [`Event::Wake`] at this time of the run's clock.
    WakeAt(Duration),
    /// Read the temperature, when its turn comes.
    ReadTemperature,
    /// The actor has what it needs before the run.
    Ready,
    /// This stage of the plan begins.
    StageBegins(usize),
    /// This stage has ended.
    StageEnds(usize),
    /// Take back everything that is in flight, and bring the device back.
    Cancel,
    /// Stop the run.
    Stop(Ending),
    /// The run is over.
    End(Ending),
}

/// Somebody who takes part.
pub trait Actor {
    /// Takes an event at `now` of the run's clock; says what is to be done.
    fn on(&mut self, event: &Event, now: Duration) -> Vec<Action>;
}
