//! What is known of a device before anything is sent to it: from sysfs, the kernel's drivers and the bridge table.

use super::error::NoPassThrough;
use super::open::is_disk;
use super::power::Media;
use crate::ata::identify::{Identify, Rotation};
use crate::bridge::quirks::{self, Rule};
use crate::scsi::inquiry::Inquiry;
use crate::scsi::vpd::{self, Vpd};
use crate::sys::{NodeFacts, UsbFacts};

/// The peripheral device type of a device that does not tell it (SPC-4, "unknown or no device type").
const UNKNOWN_TYPE: u8 = 0x1f;

/// ATA PASS-THROUGH goes to disks only, and to nothing that does not say what it is.
pub fn not_a_disk(facts: &NodeFacts, inquiry: Option<&Inquiry>) -> Option<NoPassThrough> {
    let told = inquiry
        .map(|i| i.peripheral_device_type)
        .or(facts.scsi.peripheral_type);
    let peripheral_type = told.unwrap_or(UNKNOWN_TYPE);
    (!is_disk(peripheral_type)).then_some(NoPassThrough::NotADisk { peripheral_type })
}

/// What the tables and the kernel know against sending SAT commands at all.
pub fn forbidden(facts: &NodeFacts) -> Option<NoPassThrough> {
    let usb = facts.usb.as_ref()?;
    let id = format!("{:04x}:{:04x}", usb.vid, usb.pid);
    if facts.driver.as_deref() == Some("uas") && kernel_refuses(usb, facts) {
        return Some(NoPassThrough::KernelRefuses { id });
    }
    if facts.scsi.inquiry.as_deref().is_some_and(is_asmedia_nvme) {
        let evidence = "INQUIRY data of an ASMedia NVMe bridge".to_owned();
        return Some(NoPassThrough::NvmeTunnel {
            maker: "ASMedia".to_owned(),
            evidence,
        });
    }
    let quirk = quirks::lookup(usb.vid, usb.pid, usb.bcd_device)?;
    let evidence = format!("{id}: {}", quirk.evidence);
    match quirk.rule {
        Rule::Start(_) => None,
        Rule::Tunnel(maker) => Some(NoPassThrough::NvmeTunnel {
            maker: maker.to_owned(),
            evidence,
        }),
        Rule::Foreign(dialect) => Some(NoPassThrough::Foreign {
            dialect: dialect.to_owned(),
            evidence,
        }),
        Rule::NoPassThrough => Some(NoPassThrough::KnownWithout { evidence }),
        Rule::Hangs => Some(NoPassThrough::KnownToHang { evidence }),
    }
}

/// The fingerprint of ASM236x bridges under any id: byte 4 is 47h, bytes 36 and 37 are 60h and 23h.
fn is_asmedia_nvme(inquiry: &[u8]) -> bool {
    inquiry.get(4) == Some(&0x47) && inquiry.get(36..38) == Some(&[0x60, 0x23])
}

/// The kernel's uas driver answers ATA PASS-THROUGH itself for these, unless a quirk entry lifts it.
fn kernel_refuses(usb: &UsbFacts, facts: &NodeFacts) -> bool {
    let listed = usb.vid == 0x0bc2
        || matches!(
            (usb.vid, usb.pid),
            (0x154b, 0xf009 | 0xf00b | 0xf00d) | (0x2109, 0x0711) | (0x125f, 0xa94a)
        )
        || ((usb.vid, usb.pid) == (0x13fd, 0x3940) && usb.bcd_device <= 0x0309);
    match &facts.kernel_quirks {
        Some(letters) => letters.contains('t'),
        None => listed,
    }
}

/// From the pages that the kernel cached: block device characteristics, or the ATA information page's IDENTIFY sector.
pub fn media(facts: &NodeFacts) -> Media {
    let pages = &facts.scsi.vpd_pages;
    let characteristics = pages
        .get(&0xb1)
        .and_then(|page| Vpd::parse(page).ok())
        .map(|page| page.content);
    if let Some(vpd::Content::BlockDeviceCharacteristics(page)) = characteristics {
        match page.rotating {
            Some(false) => return Media::Flash,
            Some(true) => return Media::Rotating,
            None => {}
        }
    }
    let identify = pages
        .get(&0x89)
        .and_then(|page| page.get(60..572))
        .and_then(|s| believe(s).ok());
    identify.map_or(Media::Unknown, |i| media_from_identify(&i, Media::Unknown))
}

/// A reply is an IDENTIFY sector only if signature, checksum or fields say so.
pub fn believe(data: &[u8]) -> Result<Identify, String> {
    let identify = Identify::parse(data).map_err(|e| format!("claims success, but {}", e.why))?;
    identify
        .belief()
        .require()
        .map_err(|e| format!("claims success, but {}", e.why))?;
    Ok(identify)
}

pub fn media_from_identify(identify: &Identify, before: Media) -> Media {
    match identify.rotation() {
        Rotation::NonRotating => Media::Flash,
        Rotation::Rpm(_) => Media::Rotating,
        // TRIM without a rotation rate: an early SSD.
        Rotation::Unknown if identify.trim().supported => Media::Flash,
        Rotation::Unknown => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(vid: u16, pid: u16, bcd_device: u16, driver: &str) -> NodeFacts {
        NodeFacts {
            driver: Some(driver.to_owned()),
            usb: Some(UsbFacts {
                vid,
                pid,
                bcd_device,
                ..UsbFacts::default()
            }),
            ..NodeFacts::default()
        }
    }

    #[test]
    fn the_kernel_refuses_under_uas_only_and_by_revision() {
        let refuses =
            |facts: &NodeFacts| matches!(forbidden(facts), Some(NoPassThrough::KernelRefuses { .. }));
        assert!(refuses(&behind(0x0bc2, 0xab38, 0, "uas")));
        assert!(!refuses(&behind(0x0bc2, 0xab38, 0, "usb-storage")));
        assert!(refuses(&behind(0x13fd, 0x3940, 0x0309, "uas")));
        assert!(!refuses(&behind(0x13fd, 0x3940, 0x0310, "uas")));
        let mut lifted = behind(0x0bc2, 0xab38, 0, "uas");
        lifted.kernel_quirks = Some(String::new());
        assert!(!refuses(&lifted));
        lifted.kernel_quirks = Some("t".to_owned());
        assert!(refuses(&lifted));
    }

    #[test]
    fn an_nvme_tunnel_behind_an_unknown_id_has_a_fingerprint() {
        let mut facts = behind(0x1234, 0x5678, 0, "uas");
        assert_eq!(forbidden(&facts), None);
        let mut inquiry = vec![0; 76];
        inquiry[4] = 0x47;
        inquiry[36..38].copy_from_slice(&[0x60, 0x23]);
        facts.scsi.inquiry = Some(inquiry);
        assert!(matches!(
            forbidden(&facts),
            Some(NoPassThrough::NvmeTunnel { .. })
        ));
    }

    #[test]
    fn what_does_not_say_that_it_is_a_disk_is_none() {
        let mut facts = NodeFacts::default();
        assert!(not_a_disk(&facts, None).is_some());
        facts.scsi.peripheral_type = Some(5);
        assert!(not_a_disk(&facts, None).is_some());
        facts.scsi.peripheral_type = Some(0);
        assert_eq!(not_a_disk(&facts, None), None);
    }
}
