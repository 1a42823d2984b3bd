//! What a kernel knows of a simulated device before anybody sends it a command.

use super::bridge::Bridge;
use super::profiles::{Driver, Profile, UsbProfile};
use crate::sys::{NodeFacts, ScsiFacts, UsbFacts};
use crate::text::ascii_field;

/// Pages that Linux reads and keeps where it reads any.
const CACHED_PAGES: [u8; 7] = [0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2];

/// The driver that Linux binds: `uas` where there is such a setting and nothing known speaks against it.
///
/// ASMedia gave one id to several chips: where power is drawn from the bus, a slow link or 32 streams are taken for an
/// ASM1051, whose UAS does not work.
pub fn kernel_driver(usb: &UsbProfile) -> Driver {
    let Some(uas) = usb.uas else {
        return Driver::UsbStorage;
    };
    let asmedia = usb.vid == "174c" && matches!(usb.pid.as_str(), "5106" | "55aa");
    if asmedia && usb.max_power_ma > 0 && (usb.speed_mbit_s < 5000 || uas.streams == 32) {
        Driver::UsbStorage
    } else {
        Driver::Uas
    }
}

pub fn node_facts(profile: &Profile, bridge: &Bridge) -> NodeFacts {
    let usb = &profile.usb;
    let number = |hex: &str| u16::from_str_radix(hex, 16).unwrap_or_default();
    let inquiry = bridge.standard_inquiry();
    let field = |range: std::ops::Range<usize>| inquiry.get(range).and_then(ascii_field);
    let (driver, protocol) = match kernel_driver(usb) {
        Driver::Uas => ("uas", 0x62),
        Driver::UsbStorage => ("usb-storage", 0x50),
    };
    let vpd_pages = match kernel_driver(usb) {
        // usb-storage tells the SCSI layer to leave VPD pages alone.
        Driver::UsbStorage => Default::default(),
        Driver::Uas => CACHED_PAGES
            .into_iter()
            .filter_map(|page| Some((page, bridge.vpd_page(page)?)))
            .collect(),
    };
    NodeFacts {
        simulated: true,
        driver: Some(driver.to_owned()),
        size_bytes: bridge.sectors().checked_mul(bridge.sector_bytes()),
        logical_block_bytes: u32::try_from(bridge.sector_bytes()).ok(),
        usb: Some(UsbFacts {
            vid: number(&usb.vid),
            pid: number(&usb.pid),
            bcd_device: number(&usb.bcd_device),
            manufacturer: Some(usb.manufacturer.clone()),
            product: Some(usb.product.clone()),
            serial: Some(usb.serial.clone()),
            port: None,
            speed_mbit_s: Some(usb.speed_mbit_s),
            interface_protocol: Some(protocol),
            max_power_ma: Some(usb.max_power_ma),
        }),
        scsi: ScsiFacts {
            vendor: field(8..16),
            product: field(16..32),
            revision: field(32..36),
            peripheral_type: inquiry.first().map(|b| b & 0x1f),
            vpd_pages,
            inquiry: Some(inquiry),
        },
        runtime_status: Some("active".to_owned()),
        ..NodeFacts::default()
    }
}
