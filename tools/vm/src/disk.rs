//! The disks that a guest can have, and how QEMU is told of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskKind {
    /// SATA on an AHCI controller, rotation rate not reported. It answers ATA PASS-THROUGH through the kernel's own SAT layer.
    Ahci,
    /// The same, reporting itself as solid state.
    AhciSsd,
    /// Behind a USB bridge without SAT, bulk-only transport (`usb-storage` binds).
    UsbBot,
    /// Behind a USB bridge without SAT, USB Attached SCSI (`uas` binds).
    UsbUas,
    /// An NVMe drive.
    Nvme,
}

impl DiskKind {
    /// All of them with the names that the command line knows.
    pub const ALL: [(&'static str, Self); 5] = [
        ("ahci", Self::Ahci),
        ("ahci-ssd", Self::AhciSsd),
        ("usb-bot", Self::UsbBot),
        ("usb-uas", Self::UsbUas),
        ("nvme", Self::Nvme),
    ];
}

impl DiskKind {
    pub(crate) fn is_sata(self) -> bool {
        matches!(self, Self::Ahci | Self::AhciSsd)
    }

    pub(crate) fn is_usb(self) -> bool {
        matches!(self, Self::UsbBot | Self::UsbUas)
    }
}

impl fmt::Display for DiskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL
            .iter()
            .find(|(_, kind)| kind == self)
            .map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

/// One virtual disk: all zeroes in a sparse file that is gone with the guest, unless an image is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub(crate) kind: DiskKind,
    pub(crate) size_bytes: u64,
    pub(crate) serial: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) firmware: Option<String>,
    pub(crate) image: Option<PathBuf>,
}

impl Disk {
    /// A disk of this kind: 64 MiB, with QEMU's names and a serial made of kind and position.
    pub fn new(kind: DiskKind) -> Self {
        Self {
            kind,
            size_bytes: 64 << 20,
            serial: None,
            model: None,
            firmware: None,
            image: None,
        }
    }

    /// SATA, rotation rate not reported.
    pub fn ahci() -> Self {
        Self::new(DiskKind::Ahci)
    }

    /// SATA, solid state.
    pub fn ahci_ssd() -> Self {
        Self::new(DiskKind::AhciSsd)
    }

    /// USB bridge without SAT, bulk-only.
    pub fn usb_bot() -> Self {
        Self::new(DiskKind::UsbBot)
    }

    /// USB bridge without SAT, UAS.
    pub fn usb_uas() -> Self {
        Self::new(DiskKind::UsbUas)
    }

    /// NVMe.
    pub fn nvme() -> Self {
        Self::new(DiskKind::Nvme)
    }

    /// Its size; a multiple of 512 bytes.
    pub fn size_bytes(mut self, size_bytes: u64) -> Self {
        self.size_bytes = size_bytes;
        self
    }

    /// Serial of the drive, up to 20 characters. A USB bridge gets the same as its own serial.
    pub fn serial(mut self, serial: impl Into<String>) -> Self {
        self.serial = Some(serial.into());
        self
    }

    /// Model (SATA: up to 40 characters) or SCSI product (16). QEMU's NVMe drive has a fixed one.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Firmware revision (SATA: up to 8 characters) or SCSI revision (4).
    pub fn firmware(mut self, firmware: impl Into<String>) -> Self {
        self.firmware = Some(firmware.into());
        self
    }

    /// A raw image to use instead of an empty file; the guest writes into it.
    pub fn image(mut self, path: impl Into<PathBuf>) -> Self {
        self.image = Some(path.into());
        self
    }

    /// How it is attached.
    pub fn kind(&self) -> DiskKind {
        self.kind
    }

    pub(crate) fn serial_or_default(&self, index: usize) -> String {
        self.serial
            .clone()
            .unwrap_or_else(|| format!("{}-{index}", self.kind).to_uppercase())
    }

    /// QEMU's arguments for this disk, the `index`-th of the guest and the `port`-th on its kind of controller, in that file.
    pub(crate) fn qemu_args(&self, index: usize, port: usize, file: &Path) -> Vec<String> {
        let serial = escape(&self.serial_or_default(index));
        let named = |key: &str, value: &Option<String>| {
            value
                .as_deref()
                .map(|value| format!(",{key}={}", escape(value)))
                .unwrap_or_default()
        };
        let drive = format!(
            "id=d{index},if=none,format=raw,discard=unmap,cache=unsafe,file={}",
            escape(&file.display().to_string())
        );
        let unit = format!("drive=d{index},serial={serial}");
        let scsi = format!(
            "scsi-hd,bus=b{index}.0,{unit}{}{}",
            named("product", &self.model),
            named("ver", &self.firmware)
        );
        let sata = format!(
            "ide-hd,bus=ide.{},{unit}{}{}",
            port,
            named("model", &self.model),
            named("ver", &self.firmware)
        );
        let bridge = |kind: &str| format!("{kind},id=b{index},bus=xhci.0,port={},serial={serial}", port + 1);
        let devices = match self.kind {
            // Neither a rotation rate nor TRIM: nothing tells what such a drive stores data on.
            DiskKind::Ahci => vec![sata + ",discard_granularity=0"],
            DiskKind::AhciSsd => vec![sata + ",rotation_rate=1"],
            DiskKind::UsbBot => vec![bridge("usb-bot"), scsi],
            DiskKind::UsbUas => vec![bridge("usb-uas"), scsi],
            DiskKind::Nvme => vec![format!("nvme,{unit}")],
        };
        let devices = devices
            .into_iter()
            .flat_map(|device| ["-device".to_owned(), device]);
        ["-drive".to_owned(), drive].into_iter().chain(devices).collect()
    }
}

/// A comma separates QEMU's options, two are one in a value.
fn escape(value: &str) -> String {
    value.replace(',', ",,")
}

impl FromStr for Disk {
    type Err = Error;

    /// `KIND[,size=64M][,serial=X][,model=X][,firmware=X][,image=PATH]`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let usage = |why: String| Error::Usage(format!("disk {text:?}: {why}"));
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let (_, kind) = DiskKind::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| {
                let known: Vec<&str> = DiskKind::ALL.iter().map(|(name, _)| *name).collect();
                usage(format!("the kinds are {}", known.join(", ")))
            })?;
        let mut disk = Self::new(kind);
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| usage(format!("{word:?} has no value")))?;
            disk = match key {
                "size" => disk.size_bytes(size(value).ok_or_else(|| usage(format!("{value:?} is no size")))?),
                "serial" => disk.serial(value),
                "model" => disk.model(value),
                "firmware" => disk.firmware(value),
                "image" => disk.image(value),
                _ => return Err(usage(format!("no option {key:?}"))),
            };
        }
        Ok(disk)
    }
}

/// `512`, `64K`, `64M`, `2G`: bytes, with suffixes of 1024.
fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) if text.ends_with('K') => (number, 10),
        Some(number) if text.ends_with('M') => (number, 20),
        Some(number) => (number, 30),
        None => (text, 0),
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (bytes > 0 && bytes % 512 == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_read_from_words() {
        let disk: Disk = "ahci-ssd,size=2G,serial=S1,model=A B,firmware=1.0"
            .parse()
            .unwrap();
        let wanted = Disk::ahci_ssd()
            .size_bytes(2_147_483_648)
            .serial("S1")
            .model("A B")
            .firmware("1.0");
        assert_eq!(disk, wanted);
        for wrong in [
            "",
            "floppy",
            "ahci,size=0",
            "ahci,size=100",
            "ahci,size=99999999999G",
            "nvme,serial",
            "nvme,x=y",
        ] {
            assert!(wrong.parse::<Disk>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_comma_in_a_name_stays_in_the_name() {
        let args = Disk::ahci()
            .model("A,rotation_rate=5")
            .qemu_args(0, 0, Path::new("f"));
        assert!(
            args.last().unwrap().contains("model=A,,rotation_rate=5"),
            "{args:?}"
        );
    }
}
