//! sysfs under an injectable root, so that a saved tree can stand in for a machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{NodeFacts, ScsiFacts, UsbFacts};

/// VPD pages that kernels cache in sysfs.
const CACHED_VPD_PAGES: [u8; 7] = [0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2];

/// The `sys` tree of one machine.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::new("/sys")
    }
}

/// A USB mass storage interface that has no disk: a bridge without a drive, or one that no driver took.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BareBridge {
    /// The USB facts.
    pub usb: UsbFacts,
    /// The driver that is bound, if any.
    pub driver: Option<String>,
}

/// A disk or partition as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockName {
    /// `sdb`, `sdb1`.
    pub name: String,
    /// `8:17`.
    pub number: String,
    /// Its number on the disk; `None` for the disk itself.
    pub partition: Option<u32>,
    /// What is stacked on it: device mapper, md, bcache.
    pub holders: Vec<String>,
}

impl Sysfs {
    /// A tree rooted at `root` (`/sys` on a live system).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Facts about a block device by kernel name (`sdb`, `sdb1`). A partition gives its disk's facts and its number.
    pub fn block(&self, name: &str) -> Option<NodeFacts> {
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        let mut dir = self.root.join("class/block").join(name).canonicalize().ok()?;
        let partition = text(&dir.join("partition")).and_then(|t| t.parse().ok());
        let mut partition_bytes = None;
        if partition.is_some() {
            // Both in units of 512 bytes, whatever the blocks of the disk are.
            let bytes = |name: &str| number(&dir.join(name))?.checked_mul(512);
            partition_bytes = bytes("start").zip(bytes("size"));
            dir = dir.parent()?.to_owned();
        }
        let disk = dir.file_name()?.to_str()?.to_owned();
        let device = dir.join("device").canonicalize().ok();
        let mut facts = device.as_deref().map(|d| self.scsi_device(d)).unwrap_or_default();
        facts.block_node = Some(format!("/dev/{disk}"));
        facts.partition = partition;
        facts.partition_bytes = partition_bytes;
        facts.discard_max_bytes = number(&dir.join("queue/discard_max_bytes"));
        facts.size_bytes = number(&dir.join("size")).and_then(|blocks| blocks.checked_mul(512));
        facts.logical_block_bytes =
            number(&dir.join("queue/logical_block_size")).and_then(|n| u32::try_from(n).ok());
        facts.removable = number(&dir.join("removable")).map(|n| n != 0);
        Some(facts)
    }

    /// A disk and its partitions by kernel name: what can be mounted, swapped to or held. The disk comes first.
    pub fn with_partitions(&self, disk: &str) -> Vec<BlockName> {
        if disk.is_empty() || disk.contains('/') || disk.starts_with('.') {
            return Vec::new();
        }
        let dir = self.root.join("class/block").join(disk);
        let mut names: Vec<PathBuf> = entries(&dir)
            .into_iter()
            .map(|name| dir.join(name))
            .filter(|child| child.join("partition").exists())
            .collect();
        names.sort();
        std::iter::once(dir)
            .chain(names)
            .filter_map(|dir| {
                Some(BlockName {
                    name: dir.file_name()?.to_str()?.to_owned(),
                    number: text(&dir.join("dev"))?,
                    partition: text(&dir.join("partition")).and_then(|t| t.parse().ok()),
                    holders: entries(&dir.join("holders")),
                })
            })
            .collect()
    }

    /// Loop devices whose backing file is this one.
    pub fn loops_on(&self, file: &Path) -> Vec<String> {
        let dir = self.root.join("class/block");
        let mut found: Vec<String> = entries(&dir)
            .into_iter()
            .filter(|name| {
                let backing = text(&dir.join(name).join("loop/backing_file"));
                backing.is_some_and(|backing| is_same_file(Path::new(&backing), file))
            })
            .collect();
        found.sort();
        found
    }

    /// USB serial numbers of all storage devices, to tell whether one is unique.
    pub fn usb_serials(&self) -> Vec<String> {
        self.scsi_disks()
            .iter()
            .filter_map(|name| self.block(name)?.usb?.serial)
            .collect()
    }

    /// Facts about a SCSI generic device by kernel name (`sg2`).
    pub fn generic(&self, name: &str) -> Option<NodeFacts> {
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        let device = self
            .root
            .join("class/scsi_generic")
            .join(name)
            .join("device")
            .canonicalize()
            .ok()?;
        let disk = first_entry(&device.join("block"));
        let mut facts = match disk.as_deref().and_then(|d| self.block(d)) {
            Some(facts) => facts,
            None => self.scsi_device(&device),
        };
        facts.sg_node = Some(format!("/dev/{name}"));
        Some(facts)
    }

    /// Facts about whatever device number `major:minor` is.
    pub fn by_number(&self, is_block: bool, major: u64, minor: u64) -> Option<NodeFacts> {
        let class = if is_block { "block" } else { "char" };
        let dir = self
            .root
            .join("dev")
            .join(class)
            .join(format!("{major}:{minor}"))
            .canonicalize()
            .ok()?;
        let name = dir.file_name()?.to_str()?;
        if is_block {
            self.block(name)
        } else {
            self.generic(name)
        }
    }

    /// The runtime power state of a device described before, read afresh: the device's own, or that of a suspended bridge.
    pub fn runtime_status(&self, facts: &NodeFacts) -> Option<String> {
        let class = |class: &str, node: &Option<String>| {
            let name = node.as_deref()?.strip_prefix("/dev/")?;
            self.root
                .join("class")
                .join(class)
                .join(name)
                .join("device")
                .canonicalize()
                .ok()
        };
        let device = class("block", &facts.block_node).or_else(|| class("scsi_generic", &facts.sg_node))?;
        self.runtime_status_of(&device)
    }

    fn runtime_status_of(&self, device: &Path) -> Option<String> {
        let own = text(&device.join("power/runtime_status"));
        let interface = device
            .ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(&self.root))
            .find(|dir| dir.join("bInterfaceClass").exists());
        let bridge = interface
            .and_then(Path::parent)
            .and_then(|dir| text(&dir.join("power/runtime_status")));
        bridge.filter(|status| status.starts_with("suspend")).or(own)
    }

    /// Kernel names of all SCSI disks, `sda` before `sdb` before `sdaa`.
    pub fn scsi_disks(&self) -> Vec<String> {
        let mut names: Vec<String> = entries(&self.root.join("class/block"))
            .into_iter()
            .filter(|n| n.starts_with("sd") && n.bytes().all(|b| b.is_ascii_lowercase()))
            .collect();
        names.sort_by_key(|n| (n.len(), n.clone()));
        names
    }

    /// USB mass storage interfaces under which no SCSI disk hangs.
    pub fn bare_bridges(&self) -> Vec<BareBridge> {
        let base = self.root.join("bus/usb/devices");
        let mut found = Vec::new();
        let mut names = entries(&base);
        names.sort();
        for name in names.iter().filter(|n| n.contains(':')) {
            let Ok(interface) = base.join(name).canonicalize() else {
                continue;
            };
            if text(&interface.join("bInterfaceClass")).as_deref() != Some("08") {
                continue;
            }
            let has_disk = entries(&interface)
                .iter()
                .filter(|e| e.starts_with("host"))
                .any(|host| {
                    entries(&interface.join(host))
                        .iter()
                        .filter(|e| e.starts_with("target"))
                        .any(|target| {
                            entries(&interface.join(host).join(target)).iter().any(|lun| {
                                first_entry(&interface.join(host).join(target).join(lun).join("block"))
                                    .is_some()
                            })
                        })
                });
            if has_disk {
                continue;
            }
            if let Some(usb) = interface
                .parent()
                .and_then(|device| usb_facts(device, &interface))
            {
                found.push(BareBridge {
                    usb,
                    driver: link_name(&interface.join("driver")),
                });
            }
        }
        found
    }

    fn scsi_device(&self, device: &Path) -> NodeFacts {
        let mut facts = NodeFacts {
            hctl: device
                .file_name()
                .and_then(|n| n.to_str())
                .filter(|n| n.split(':').count() == 4)
                .map(str::to_owned),
            sg_node: first_entry(&device.join("scsi_generic")).map(|n| format!("/dev/{n}")),
            scsi: scsi_facts(device),
            provisioning_mode: first_entry(&device.join("scsi_disk"))
                .and_then(|disk| text(&device.join("scsi_disk").join(disk).join("provisioning_mode"))),
            ..NodeFacts::default()
        };
        let mut up = device.parent();
        while let Some(dir) = up {
            if !dir.starts_with(&self.root) {
                break;
            }
            if facts.usb.is_none() && dir.join("bInterfaceClass").exists() {
                facts.driver = link_name(&dir.join("driver"));
                facts.usb = dir.parent().and_then(|usb_device| usb_facts(usb_device, dir));
            }
            if facts.driver.is_none() && is_host(dir) {
                let name = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                facts.driver = text(&dir.join("scsi_host").join(name).join("proc_name"))
                    .or_else(|| text(&self.root.join("class/scsi_host").join(name).join("proc_name")));
            }
            up = dir.parent();
        }
        facts.runtime_status = self.runtime_status_of(device);
        if let Some(usb) = &facts.usb {
            facts.kernel_quirks = self.kernel_quirks(usb.vid, usb.pid);
        }
        facts
    }

    fn kernel_quirks(&self, vid: u16, pid: u16) -> Option<String> {
        let all = text(&self.root.join("module/usb_storage/parameters/quirks"))?;
        let wanted = format!("{vid:04x}:{pid:04x}:");
        all.split(',').find_map(|entry| {
            entry
                .trim()
                .to_ascii_lowercase()
                .strip_prefix(&wanted)
                .map(str::to_owned)
        })
    }
}

fn is_host(dir: &Path) -> bool {
    dir.file_name()
        .and_then(|n| n.to_str())
        .and_then(|n| n.strip_prefix("host"))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn scsi_facts(device: &Path) -> ScsiFacts {
    let mut vpd_pages = BTreeMap::new();
    for page in CACHED_VPD_PAGES {
        if let Ok(bytes) = std::fs::read(device.join(format!("vpd_pg{page:02x}")))
            && !bytes.is_empty()
        {
            vpd_pages.insert(page, bytes);
        }
    }
    ScsiFacts {
        vendor: text(&device.join("vendor")),
        product: text(&device.join("model")),
        revision: text(&device.join("rev")),
        peripheral_type: number(&device.join("type")).and_then(|n| u8::try_from(n).ok()),
        inquiry: std::fs::read(device.join("inquiry"))
            .ok()
            .filter(|b| !b.is_empty()),
        vpd_pages,
    }
}

/// `None` when not even the ids can be read.
fn usb_facts(device: &Path, interface: &Path) -> Option<UsbFacts> {
    let hex16 = |name: &str| text(&device.join(name)).and_then(|t| u16::from_str_radix(&t, 16).ok());
    Some(UsbFacts {
        vid: hex16("idVendor")?,
        pid: hex16("idProduct")?,
        bcd_device: hex16("bcdDevice").unwrap_or_default(),
        manufacturer: text(&device.join("manufacturer")),
        product: text(&device.join("product")),
        serial: text(&device.join("serial")),
        port: device.file_name().and_then(|n| n.to_str()).map(str::to_owned),
        speed_mbit_s: text(&device.join("speed")).and_then(|t| t.split('.').next()?.parse().ok()),
        interface_protocol: text(&interface.join("bInterfaceProtocol"))
            .and_then(|t| u8::from_str_radix(&t, 16).ok()),
        max_power_ma: text(&device.join("bMaxPower")).and_then(|t| t.trim_end_matches("mA").parse().ok()),
    })
}

/// By name, or by another name of the same file or node.
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.dev(), meta.ino(), meta.rdev()))
    };
    one == other
        || matches!((identity(one), identity(other)), (Some(a), Some(b))
            if (a.0, a.1) == (b.0, b.1) || (a.2 != 0 && a.2 == b.2))
}

/// A small text attribute, trimmed; device strings may hold any bytes.
fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(['\n', ' ', '\0']);
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

fn entries(dir: &Path) -> Vec<String> {
    let Ok(list) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    list.filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect()
}

fn first_entry(dir: &Path) -> Option<String> {
    let mut names = entries(dir);
    names.sort();
    names.into_iter().next()
}

fn link_name(path: &Path) -> Option<String> {
    std::fs::read_link(path)
        .ok()?
        .file_name()?
        .to_str()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A machine with a SATA bridge on port 2-1 (`sdb`, partition 1) and an empty card reader on 1-4.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        let put = |path: &str, content: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directories");
            fs::write(path, content).expect("file");
        };
        let usb = "devices/pci0000:00/0000:00:14.0/usb2/2-1";
        for (name, value) in [
            ("idVendor", "174c\n"),
            ("idProduct", "55aa\n"),
            ("bcdDevice", "0100\n"),
            ("manufacturer", "ASMT\n"),
            ("product", "2115\n"),
            ("speed", "5000\n"),
            ("bMaxPower", "0mA\n"),
            ("power/runtime_status", "active\n"),
            ("2-1:1.0/bInterfaceClass", "08\n"),
            ("2-1:1.0/bInterfaceProtocol", "62\n"),
        ] {
            put(&format!("{usb}/{name}"), value);
        }
        let lun = format!("{usb}/2-1:1.0/host6/target6:0:0/6:0:0:0");
        for (name, value) in [
            ("vendor", "ASMT    \n"),
            ("model", "2115            \n"),
            ("type", "0\n"),
            ("power/runtime_status", "active\n"),
            ("vpd_pgb1", "\0\u{1}"),
            ("scsi_generic/sg2/dev", "21:2\n"),
            ("block/sdb/size", "234441648\n"),
            ("block/sdb/removable", "0\n"),
            ("block/sdb/queue/logical_block_size", "512\n"),
            ("block/sdb/sdb1/partition", "1\n"),
        ] {
            put(&format!("{lun}/{name}"), value);
        }
        let link = |from: &str, to: &str| {
            let from = root.path().join(from);
            fs::create_dir_all(from.parent().expect("parent")).expect("directories");
            symlink(root.path().join(to), from).expect("link");
        };
        link("class/block/sdb", &format!("{lun}/block/sdb"));
        link("class/block/sdb1", &format!("{lun}/block/sdb/sdb1"));
        link(&format!("{lun}/block/sdb/device"), &lun);
        link("class/scsi_generic/sg2/device", &lun);
        link("dev/block/8:17", &format!("{lun}/block/sdb/sdb1"));
        put("bus/usb/drivers/uas/bind", "");
        link(&format!("{usb}/2-1:1.0/driver"), "bus/usb/drivers/uas");
        link("bus/usb/devices/2-1:1.0", &format!("{usb}/2-1:1.0"));
        put("devices/pci0000:00/0000:00:14.0/usb1/1-4/idVendor", "0bda\n");
        put("devices/pci0000:00/0000:00:14.0/usb1/1-4/idProduct", "0129\n");
        put(
            "devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0/bInterfaceClass",
            "08\n",
        );
        link(
            "bus/usb/devices/1-4:1.0",
            "devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0",
        );
        put(
            "module/usb_storage/parameters/quirks",
            "0bc2:ab38:u,174C:55AA:tu\n",
        );
        root
    }

    #[test]
    fn a_usb_disk_is_described_from_any_of_its_names() {
        let root = machine();
        let sysfs = Sysfs::new(root.path());
        let disk = sysfs.block("sdb").expect("sdb");
        assert_eq!(disk.block_node.as_deref(), Some("/dev/sdb"));
        assert_eq!(disk.sg_node.as_deref(), Some("/dev/sg2"));
        assert_eq!(disk.hctl.as_deref(), Some("6:0:0:0"));
        assert_eq!(disk.driver.as_deref(), Some("uas"));
        assert_eq!(disk.size_bytes, Some(120_034_123_776));
        assert_eq!(disk.scsi.vendor.as_deref(), Some("ASMT"));
        assert_eq!(disk.scsi.vpd_pages.keys().copied().collect::<Vec<_>>(), [0xb1]);
        assert_eq!(disk.kernel_quirks.as_deref(), Some("tu"));
        let usb = disk.usb.clone().expect("behind USB");
        assert_eq!((usb.vid, usb.pid, usb.bcd_device), (0x174c, 0x55aa, 0x0100));
        assert_eq!((usb.port.as_deref(), usb.speed_mbit_s), (Some("2-1"), Some(5000)));
        assert_eq!((usb.interface_protocol, usb.max_power_ma), (Some(0x62), Some(0)));
        let partition = sysfs.by_number(true, 8, 17).expect("sdb1");
        assert_eq!(
            (partition.partition, partition.block_node),
            (Some(1), disk.block_node.clone())
        );
        assert_eq!(sysfs.generic("sg2"), Some(disk));
        assert_eq!(sysfs.scsi_disks(), ["sdb"]);
    }

    #[test]
    fn a_bridge_without_a_disk_is_found() {
        let root = machine();
        let bare = Sysfs::new(root.path()).bare_bridges();
        assert_eq!(bare.len(), 1);
        assert_eq!((bare[0].usb.vid, bare[0].driver.as_deref()), (0x0bda, None));
    }

    #[test]
    fn the_power_state_is_read_afresh() {
        let root = machine();
        let sysfs = Sysfs::new(root.path());
        let disk = sysfs.block("sdb").expect("sdb");
        assert_eq!(sysfs.runtime_status(&disk).as_deref(), Some("active"));
        let own = root.path().join("class/block/sdb/device/power/runtime_status");
        fs::write(own, "suspended\n").expect("write");
        assert_eq!(sysfs.runtime_status(&disk).as_deref(), Some("suspended"));
        assert_eq!(sysfs.runtime_status(&NodeFacts::default()), None);
    }

    #[test]
    fn a_suspended_bridge_shows_through() {
        let root = machine();
        let status = root
            .path()
            .join("devices/pci0000:00/0000:00:14.0/usb2/2-1/power/runtime_status");
        fs::write(status, "suspended\n").expect("write");
        let disk = Sysfs::new(root.path()).block("sdb").expect("sdb");
        assert_eq!(disk.runtime_status.as_deref(), Some("suspended"));
    }

    #[test]
    fn names_cannot_leave_the_tree() {
        let root = machine();
        let sysfs = Sysfs::new(root.path());
        assert_eq!(sysfs.block("../../etc"), None);
        assert_eq!(sysfs.block("sdz"), None);
        assert!(Sysfs::new("/nonexistent").scsi_disks().is_empty());
    }
}
