//! What the operating system knows about a device without anybody touching it, and the lock that keeps two of us apart.

pub mod lock;
pub mod sysfs;
pub mod usage;

use serde::{Deserialize, Serialize};

/// The USB side of a device, from sysfs or from the simulator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsbFacts {
    /// idVendor.
    pub vid: u16,
    /// idProduct.
    pub pid: u16,
    /// bcdDevice: the bridge's firmware revision, as far as vendors keep it.
    pub bcd_device: u16,
    /// iManufacturer, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// iProduct, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// iSerialNumber, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Bus and port path, `2-1.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Signalling rate in Mbit/s: 480, 5000, 10000, 20000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<u32>,
    /// bInterfaceProtocol of the alternate setting in use: 50h BOT, 62h UAS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface_protocol: Option<u8>,
    /// bMaxPower in mA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_power_ma: Option<u32>,
}

/// What the kernel cached of the SCSI target when it found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScsiFacts {
    /// T10 vendor identification, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Product identification, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Product revision level, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Peripheral device type, 00h for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peripheral_type: Option<u8>,
    /// Raw standard INQUIRY data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Vec<u8>>,
    /// Raw VPD pages that the kernel read, by page code.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub vpd_pages: std::collections::BTreeMap<u8, Vec<u8>>,
}

/// Everything known about a device before the first command is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// Block device node, `/dev/sdb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_node: Option<String>,
    /// SCSI generic node, `/dev/sg2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sg_node: Option<String>,
    /// Partition number when the name was a partition's; the other fields describe the whole disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// `removable` flag of the block layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removable: Option<bool>,
    /// Host, channel, target, LUN: `6:0:0:0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hctl: Option<String>,
    /// The driver of the host: `uas`, `usb-storage`, `ahci`, `sim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Size in bytes as the block layer sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Logical block size of the block layer, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_block_bytes: Option<u32>,
    /// Where the named partition lies on its disk, in bytes: start and length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_bytes: Option<(u64, u64)>,
    /// What the kernel discards in one request, in bytes; 0 where it discards nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard_max_bytes: Option<u64>,
    /// How the kernel discards: `unmap`, `writesame_16`, `full` (not at all) ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_mode: Option<String>,
    /// USB facts, absent when the device is not behind USB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb: Option<UsbFacts>,
    /// These are the facts of a simulated device.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Module parameter `usb-storage.quirks` of the running kernel for this VID:PID, as letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_quirks: Option<String>,
    /// SCSI facts.
    pub scsi: ScsiFacts,
    /// Runtime power state of the device and, behind USB, of the bridge: `active`, `suspended`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_status: Option<String>,
}
