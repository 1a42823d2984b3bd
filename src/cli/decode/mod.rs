//! `drivethru decode`: says what the bytes in a file mean, without any device.

mod guess;
mod input;
mod render;

pub use input::read_input;
pub use render::render_text;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ata::devstat::DeviceStatistics;
use crate::ata::identify::{Identify, Verdict};
use crate::ata::sct::{SctStatus, TempHistory};
use crate::ata::smart::{SmartData, SmartReport, Thresholds};
use crate::nvme::identify::Controller;
use crate::nvme::log::SmartLog;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::sense::Sense;
use crate::scsi::vpd::Vpd;
use crate::transport::usb::descriptors::Descriptors;
use crate::wire::WireError;

/// Name and version of the documents.
pub const SCHEMA: &str = "drivethru-decode/1";
/// The version alone.
pub const SCHEMA_VERSION: u32 = 1;

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Kind {
    /// Guess from size, checksums and signatures
    Auto,
    /// ATA IDENTIFY DEVICE data, 512 bytes, in either byte order
    Identify,
    /// ATA SMART READ DATA, 512 bytes
    SmartData,
    /// ATA SMART READ THRESHOLDS, 512 bytes
    SmartThresholds,
    /// ATA SCT status, 512 bytes
    SctStatus,
    /// ATA SCT temperature history, 512 bytes
    SctTempHistory,
    /// ATA device statistics (log 04h), pages of 512 bytes
    Devstat,
    /// NVMe SMART / Health Information (log page 02h), 512 bytes
    NvmeSmart,
    /// NVMe Identify Controller, 4096 bytes or the first 512
    NvmeIdentify,
    /// SCSI standard INQUIRY data
    Inquiry,
    /// SCSI vital product data page
    Vpd,
    /// SCSI sense data
    Sense,
    /// USB device, configuration and BOS descriptors
    UsbDescriptors,
}

impl Kind {
    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Identify => "identify",
            Self::SmartData => "smart-data",
            Self::SmartThresholds => "smart-thresholds",
            Self::SctStatus => "sct-status",
            Self::SctTempHistory => "sct-temp-history",
            Self::Devstat => "devstat",
            Self::NvmeSmart => "nvme-smart",
            Self::NvmeIdentify => "nvme-identify",
            Self::Inquiry => "inquiry",
            Self::Vpd => "vpd",
            Self::Sense => "sense",
            Self::UsbDescriptors => "usb-descriptors",
        }
    }
}

/// Why nothing could be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// There are no bytes.
    #[error("the input is empty")]
    Empty,
    /// There is text, but no bytes written in it.
    #[error("this is text, but no dump that can be read")]
    Text,
    /// A hex dump contradicts itself, or can mean more than one thing.
    #[error("hex input, line {line}: {why}")]
    Input {
        /// Line number from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// `auto` finds nothing that fits.
    #[error("{len_bytes} bytes are nothing that can be recognised; name the kind if you know it")]
    Unrecognised {
        /// How many bytes there were.
        len_bytes: usize,
    },
    /// The bytes are not what they are said to be.
    #[error("not {kind}: {source}")]
    Wire {
        /// The kind that was asked for.
        kind: &'static str,
        /// What is wrong.
        source: WireError,
    },
    /// A document could not be put together.
    #[error("{kind}: {why}")]
    Document {
        /// The kind.
        kind: &'static str,
        /// What the serialiser said.
        why: String,
    },
}

/// Decodes `bytes`; `identify` and `thresholds` of the same drive refine `smart-data`.
///
/// Every document has `schema`, `schema_version` and `kind`; with [`Kind::Auto`] also `guessed_from`.
///
/// # Errors
/// When the bytes cannot be what `kind` says, or `auto` recognises nothing.
pub fn decode(
    kind: Kind,
    bytes: &[u8],
    identify: Option<&[u8]>,
    thresholds: Option<&[u8]>,
) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let (kind, guessed_from) = match kind {
        Kind::Auto => {
            let (kind, why) = guess::guess(bytes)?;
            (kind, Some(why))
        }
        kind => (kind, None),
    };
    let mut document = Map::new();
    document.insert("schema".to_owned(), json!(SCHEMA));
    document.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
    document.insert("kind".to_owned(), json!(kind.name()));
    if let Some(why) = guessed_from {
        document.insert("guessed_from".to_owned(), json!(why));
    }
    let content = content(kind, bytes, identify, thresholds)?;
    for (key, value) in content {
        document.entry(key).or_insert(value);
    }
    Ok(Value::Object(document))
}

fn content(
    kind: Kind,
    bytes: &[u8],
    identify: Option<&[u8]>,
    thresholds: Option<&[u8]>,
) -> Result<Map<String, Value>, DecodeError> {
    let wire = |source: WireError| DecodeError::Wire {
        kind: kind.name(),
        source,
    };
    match kind {
        Kind::Auto => Err(DecodeError::Unrecognised {
            len_bytes: bytes.len(),
        }),
        Kind::Identify => {
            let identify = Identify::parse(bytes).map_err(wire)?;
            let summary = identify.summary();
            let mut document = object(kind, &summary)?;
            if summary.belief.verdict == Verdict::Rejected {
                // What the words would mean in IDENTIFY data, they do not mean here.
                document.retain(|key, _| matches!(key.as_str(), "belief" | "byte_order" | "checksum"));
            }
            Ok(document)
        }
        Kind::SmartData => {
            let data = SmartData::parse(bytes).map_err(wire)?;
            let companion = |kind: Kind| {
                move |source| DecodeError::Wire {
                    kind: kind.name(),
                    source,
                }
            };
            let identify = identify
                .map(Identify::parse)
                .transpose()
                .map_err(companion(Kind::Identify))?;
            let thresholds = thresholds
                .map(Thresholds::parse)
                .transpose()
                .map_err(companion(Kind::SmartThresholds))?;
            object(
                kind,
                &SmartReport::build(&data, thresholds.as_ref(), identify.as_ref()),
            )
        }
        Kind::SmartThresholds => {
            let thresholds = Thresholds::parse(bytes).map_err(wire)?;
            let mut document = Map::new();
            document.insert("checksum".to_owned(), json!(thresholds.checksum()));
            document.insert("revision".to_owned(), json!(thresholds.revision()));
            let entries: Vec<_> = thresholds.entries().collect();
            document.insert("thresholds".to_owned(), json!(entries));
            Ok(document)
        }
        Kind::SctStatus => object(kind, &SctStatus::parse(bytes).map_err(wire)?),
        Kind::SctTempHistory => object(kind, &TempHistory::parse(bytes).map_err(wire)?),
        Kind::Devstat => object(kind, &DeviceStatistics::parse(bytes).map_err(wire)?),
        Kind::NvmeSmart => {
            let log = SmartLog::parse(bytes).map_err(wire)?;
            let mut document = object(kind, &log)?;
            document.insert("plausible".to_owned(), json!(log.is_plausible()));
            Ok(document)
        }
        Kind::NvmeIdentify => {
            let controller = Controller::parse(bytes).map_err(wire)?;
            let mut document = object(kind, &controller)?;
            document.insert("plausible".to_owned(), json!(controller.is_plausible()));
            Ok(document)
        }
        Kind::Inquiry => object(kind, &Inquiry::parse(bytes).map_err(wire)?),
        Kind::Vpd => object(kind, &Vpd::parse(bytes).map_err(wire)?),
        Kind::Sense => object(kind, &Sense::parse(bytes).map_err(wire)?),
        Kind::UsbDescriptors => object(kind, &Descriptors::parse(bytes).map_err(wire)?),
    }
}

fn object(kind: Kind, model: &impl Serialize) -> Result<Map<String, Value>, DecodeError> {
    let problem = |why: String| DecodeError::Document {
        kind: kind.name(),
        why,
    };
    match serde_json::to_value(model) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(problem("no object".to_owned())),
        Err(error) => Err(problem(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_are_those_of_the_command_line() {
        for kind in Kind::value_variants() {
            let typed = kind.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), kind.name());
        }
    }

    #[test]
    fn a_sector_that_is_no_identify_data_means_nothing() {
        let noise: Vec<u8> = (0..512u32).map(|i| (i * 37 % 251) as u8).collect();
        let document = decode(Kind::Identify, &noise, None, None).unwrap();
        assert_eq!(document.pointer("/belief/verdict"), Some(&json!("rejected")));
        for key in ["model", "sectors", "trim", "smart", "features", "security"] {
            assert_eq!(document.get(key), None, "{key}");
        }
    }

    #[test]
    fn auto_says_what_it_guessed_from_or_gives_up() {
        let sense = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];
        let document = decode(Kind::Auto, &sense, None, None).unwrap();
        assert_eq!(document.get("kind"), Some(&json!("sense")));
        assert!(document.get("guessed_from").is_some());
        for hopeless in [&[0u8; 512][..], &[0xff; 4096], b"hello", &[0x12]] {
            assert!(decode(Kind::Auto, hopeless, None, None).is_err());
        }
        assert_eq!(decode(Kind::Auto, &[], None, None), Err(DecodeError::Empty));
    }
}
