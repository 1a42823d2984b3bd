//! IDENTIFY DEVICE data (ACS, "IDENTIFY DEVICE"), built word by word.

use super::AtaDrive;
use crate::sim::buf::put16;

struct Words([u8; 512]);

impl Words {
    fn set(&mut self, word: usize, value: u16) {
        put16(&mut self.0, word * 2, value);
    }

    /// The first character of each pair goes into the high byte.
    fn text(&mut self, word: usize, words: usize, text: &str) {
        let mut characters = text.bytes().chain(std::iter::repeat(b' '));
        for n in word..word + words {
            let first = characters.next().unwrap_or(b' ');
            let second = characters.next().unwrap_or(b' ');
            self.set(n, u16::from_be_bytes([first, second]));
        }
    }

    fn wide(&mut self, word: usize, words: usize, value: u64) {
        for n in 0..words {
            self.set(word + n, (value >> (16 * n)) as u16);
        }
    }
}

/// Builds the sector with its integrity word.
pub fn page(drive: &AtaDrive) -> Vec<u8> {
    let p = &drive.profile;
    let sectors = drive.sectors();
    let mut w = Words([0; 512]);
    w.set(0, 0x0040);
    w.set(1, 16383);
    w.set(2, 0xc837);
    w.set(3, 16);
    w.set(6, 63);
    w.text(10, 10, &p.serial);
    w.text(23, 4, &p.firmware);
    w.text(27, 20, &p.model);
    w.set(47, 0x8010);
    w.set(48, 0x4000);
    // LBA, DMA, IORDY, standard standby timer.
    w.set(49, 0x2f00);
    w.set(50, 0x4000);
    w.set(53, 0x0007);
    w.set(54, 16383);
    w.set(55, 16);
    w.set(56, 63);
    w.wide(57, 2, 16383 * 16 * 63);
    if drive.multiple > 0 {
        w.set(59, 0x0100 | drive.multiple);
    }
    w.wide(60, 2, sectors.min(0x0fff_ffff));
    w.set(63, 0x0007);
    w.set(64, 0x0003);
    for n in 65..=68 {
        w.set(n, 120);
    }
    if let Some(trim) = &p.trim {
        w.set(
            69,
            u16::from(trim.deterministic) << 14 | u16::from(trim.zeroes) << 5,
        );
        w.set(105, trim.max_blocks);
        w.set(169, 0x0001);
    }
    w.set(75, 31);
    w.set(76, 0x070e);
    w.set(77, 0x0006);
    w.set(78, 0x0040);
    w.set(79, 0x0040);
    w.set(80, p.major_version);
    w.set(81, p.minor_version);
    // SMART, power management, write cache, look-ahead, WRITE BUFFER, READ BUFFER; and the host protected area.
    let features = 0x3069 | u16::from(!p.amac) << 10;
    let apm = u16::from(p.rotation != 1) << 3;
    w.set(82, features);
    w.set(83, 0x7400 | apm);
    let logging = 0x4143 | u16::from(p.gpl) << 5;
    w.set(84, logging);
    let off = u16::from(!drive.smart.enabled)
        | u16::from(!drive.write_cache_on()) << 5
        | u16::from(!drive.look_ahead) << 6;
    w.set(85, features & !off);
    w.set(86, 0xb400 | if drive.apm.is_some() { apm } else { 0 });
    w.set(87, logging);
    w.set(88, 0x407f);
    w.set(91, drive.apm.map_or(0, u16::from));
    w.wide(100, 4, sectors);
    let logical = drive.medium.sector_bytes();
    let per_physical = (drive.physical_sector_bytes / logical.max(1)).max(1);
    let mut sizes = 0x4000;
    if per_physical > 1 {
        sizes |= 0x2000 | per_physical.trailing_zeros() as u16;
    }
    if logical > 512 {
        sizes |= 0x1000;
        w.wide(117, 2, logical / 2);
    }
    w.set(106, sizes);
    let wwn = drive.wwn();
    for n in 0..4 {
        w.set(108 + n, (wwn >> (48 - 16 * n)) as u16);
    }
    // WRITE UNCORRECTABLE EXT, logs by DMA, accessible max address.
    let more = 0x4004 | u16::from(p.gpl) << 3 | u16::from(p.amac) << 8;
    w.set(119, more);
    w.set(120, more);
    w.set(168, u16::from(p.form_factor));
    w.set(206, p.sct);
    w.set(209, 0x4000);
    w.set(217, p.rotation);
    w.set(222, p.transport_version);
    w.set(255, 0x00a5);
    crate::sim::buf::seal(&mut w.0);
    w.0.to_vec()
}
