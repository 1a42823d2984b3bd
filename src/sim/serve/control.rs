//! Live control: one text command a line, one JSON line as the answer.

use std::io::{self, BufRead, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::Frame;
use super::address::Address;
use super::device::Device;
use super::server::link::Link;
use crate::text;

/// The longest command, in bytes: a write of 64 blocks of 4096 bytes in hex with blanks.
pub const MAX_LINE_BYTES: u64 = 1 << 20;

/// The longest answer that [`ask`] takes, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// How long [`ask`] waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The commands, each with what it does.
pub const HELP: &[(&str, &str)] = &[
    ("help", "these commands"),
    ("status", "plug, host, power state, temperature, counters"),
    ("unplug", "pull the plug"),
    ("plug", "put it back: a power cycle"),
    (
        "set OPTION=VALUE",
        "change temp (auto unpins), ambient, fault (none ends it), fault_after, fault_count, fault_on, health or power",
    ),
    ("log", "every CDB that has reached the simulator"),
    ("log clear", "forget them"),
    (
        "discarded",
        "every range of the drive that was ever trimmed, as [first sector, count]",
    ),
    (
        "read LBA COUNT",
        "up to 64 blocks of the medium as hex, without a command",
    ),
    ("write LBA HEX", "change blocks of the medium, without a command"),
    ("quit", "end the server"),
];

/// What a line comes to.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// One JSON document, without the line's end.
    pub line: String,
    /// The server shall end.
    pub quit: bool,
}

/// Refuses in words.
pub fn refusal(why: &str) -> String {
    json!({"ok": false, "error": why}).to_string()
}

/// Runs one command. `host` is who has the device.
pub fn execute(device: &mut dyn Device, line: &str, host: Option<&str>, now: Duration) -> Answer {
    let quit = line.trim() == "quit";
    let line = match run(device, line.trim(), host, now) {
        Ok(mut members) => {
            let mut all = Map::new();
            all.insert("ok".to_owned(), Value::Bool(true));
            all.append(&mut members);
            Value::Object(all).to_string()
        }
        Err(why) => refusal(&why),
    };
    Answer { line, quit }
}

fn run(
    device: &mut dyn Device,
    line: &str,
    host: Option<&str>,
    now: Duration,
) -> Result<Map<String, Value>, String> {
    let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let answer = match (verb, rest) {
        ("help", "") => {
            let commands: Vec<Value> = HELP
                .iter()
                .map(|(command, what)| json!({"command": command, "does": what}))
                .collect();
            json!({"commands": commands})
        }
        ("status", "") => status(device, host, now),
        ("unplug", "") => {
            if device.plugged() {
                device.unplug(now);
            }
            json!({"plugged": device.plugged()})
        }
        ("plug", "") => {
            if !device.plugged() {
                device.plug(now);
            }
            json!({"plugged": device.plugged()})
        }
        ("set", assignment) => {
            let (key, value) = assignment
                .split_once('=')
                .ok_or_else(|| "write: set OPTION=VALUE".to_owned())?;
            device.target().set(key, value).map_err(|e| e.why)?;
            json!({key: value})
        }
        ("log", "") => {
            let target = device.target();
            json!({"dropped": target.log_dropped(), "log": target.log()})
        }
        ("log", "clear") => {
            device.target().clear_log();
            json!({})
        }
        ("discarded", "") => json!({"ranges": device.target().discarded()}),
        ("read", extent) => {
            let mut words = extent.split_whitespace();
            let (Some(lba), Some(count), None) = (words.next(), words.next(), words.next()) else {
                return Err("write: read LBA COUNT".to_owned());
            };
            let (lba, count) = (number(lba)?, number(count)?);
            let data = device.target().peek(lba, count).map_err(|e| e.why)?;
            json!({"lba": lba, "count": count, "hex": text::hex(&data)})
        }
        ("write", extent) => {
            let (lba, hex) = extent
                .split_once(char::is_whitespace)
                .ok_or_else(|| "write: write LBA HEX".to_owned())?;
            let lba = number(lba)?;
            let data = text::parse_hex(hex).ok_or_else(|| "the data is not hex".to_owned())?;
            let target = device.target();
            target.poke(lba, &data).map_err(|e| e.why)?;
            json!({"lba": lba, "count": data.len() as u64 / target.block_bytes().max(1)})
        }
        ("quit", "") => json!({}),
        ("", _) => return Err("no command; `help` names them".to_owned()),
        (other, _) if HELP.iter().any(|(c, _)| c.split(' ').next() == Some(other)) => {
            return Err(format!(
                "{other} does not take {rest:?}; `help` shows how to write it"
            ));
        }
        (other, _) => return Err(format!("no command {other:?}; `help` names them")),
    };
    match answer {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}

fn status(device: &mut dyn Device, host: Option<&str>, now: Duration) -> Value {
    let plugged = device.plugged();
    let target = device.target();
    json!({
        "plugged": plugged,
        "host": host,
        "power_state": target.power_state(),
        "temperature_celsius": target.temperature_celsius(),
        "wakes": target.wakes(),
        "trimmed_blocks": target.trimmed_blocks(),
        "commands": target.log().len() as u64 + target.log_dropped(),
        "now_us": u64::try_from(now.as_micros()).unwrap_or(u64::MAX),
    })
}

fn number(word: &str) -> Result<u64, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| format!("{word:?} is no number"))
}

/// A server that could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Nobody listens there, or the connection broke.
    #[error("{address}: {source}")]
    Io {
        /// Where.
        address: Address,
        /// What happened.
        source: io::Error,
    },
    /// What came back is no answer.
    #[error("{address} ended without an answer")]
    NoAnswer {
        /// Where.
        address: Address,
    },
    /// A command has one line.
    #[error("a command is one line of at most {MAX_LINE_BYTES} bytes")]
    NotOneLine,
}

/// Sends one command to the control face of a server and returns its answer, a JSON document on one line.
///
/// # Errors
/// Nobody listens at `address`, or no answer came within 30 s.
pub fn ask(address: &Address, command: &str) -> Result<String, AskError> {
    if command.contains(['\n', '\r']) || command.len() as u64 >= MAX_LINE_BYTES {
        return Err(AskError::NotOneLine);
    }
    let failed = |source| AskError::Io {
        address: address.clone(),
        source,
    };
    let talk = || -> io::Result<String> {
        let link = Link::call(address)?;
        link.set_read_timeout(Some(PATIENCE))?;
        let command = Frame {
            head: format!("{command}\n").into_bytes(),
            data: Vec::new(),
        };
        link.send(&command, Instant::now() + PATIENCE)?;
        let mut answer = String::new();
        BufReader::new(io::Read::take(&link, MAX_ANSWER_BYTES)).read_line(&mut answer)?;
        Ok(answer)
    };
    match talk().map_err(failed)?.strip_suffix('\n') {
        Some(answer) => Ok(answer.to_owned()),
        None => Err(AskError::NoAnswer {
            address: address.clone(),
        }),
    }
}
