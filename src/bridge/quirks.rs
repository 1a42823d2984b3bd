//! What is known of single bridges before anything is sent: it orders the probing and forbids some of it.
//!
//! Most bridges need no entry. Each row carries its evidence: the public device lists and drivers whose behaviour it
//! restates. Rows are sorted by VID:PID; a test keeps them so.

/// What a row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Start the probing with this SAT dialect.
    Start(&'static str),
    /// An NVMe tunnel of this maker: SAT commands mean nothing there, or something else.
    Tunnel(&'static str),
    /// It speaks this vendor dialect and not SAT.
    Foreign(&'static str),
    /// A flash controller or bridge that is known to have no pass-through.
    NoPassThrough,
    /// It hangs or drops off when probed.
    Hangs,
}

/// A rule and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirk {
    /// What to do.
    pub rule: Rule,
    /// The source of the fact.
    pub evidence: &'static str,
}

/// The row for a bridge revision, if there is one; rows for single revisions come first.
pub fn lookup(vid: u16, pid: u16, bcd_device: u16) -> Option<Quirk> {
    let revision = REVISIONS
        .iter()
        .find(|row| (row.0, row.1) == (vid, pid) && (row.2..=row.3).contains(&bcd_device));
    if let Some(row) = revision {
        return Some(Quirk {
            rule: row.4,
            evidence: row.5,
        });
    }
    let index = ROWS
        .binary_search_by_key(&(vid, pid), |row| (row.0, row.1))
        .ok()?;
    ROWS.get(index).map(|row| Quirk {
        rule: row.2,
        evidence: row.3,
    })
}

/// Rows that hold for some revisions only: bcdDevice from and to.
#[rustfmt::skip]
const REVISIONS: &[(u16, u16, u16, u16, Rule, &str)] = &[
    (0x04e8, 0x6032, 0x0000, 0x0000, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x14cd, 0x6116, 0x0150, 0x0160, Rule::Foreign("usbcypress"), "Linux"),
    (0x152d, 0x2509, 0x0100, 0x0100, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x3538, 0x0902, 0x010f, 0x010f, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
];

#[rustfmt::skip]
const ROWS: &[(u16, u16, Rule, &str)] = &[
    (0x0350, 0x0038, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x03f0, 0x070c, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0411, 0x039d, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x043e, 0x70f1, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x0451, 0x625f, Rule::Foreign("ti"), "opensea-transport"),
    (0x0480, 0xa004, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x048d, 0x1172, Rule::NoPassThrough, "opensea-transport"),
    (0x048d, 0x1176, Rule::NoPassThrough, "opensea-transport"),
    (0x04b4, 0x6830, Rule::Foreign("usbcypress"), "Linux, opensea-transport, smartmontools drivedb"),
    (0x04b4, 0x6831, Rule::Foreign("usbcypress"), "Linux, opensea-transport"),
    (0x04bb, 0x0122, Rule::Foreign("usbjmicron"), "CrystalDiskInfo"),
    (0x04e8, 0x1f05, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x04e8, 0x1f06, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x04e8, 0x1f08, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x04e8, 0x1f0a, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x04e8, 0x2f03, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x04e8, 0x2f06, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x04e8, 0x4001, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x04e8, 0x6093, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x04e8, 0x61c3, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x04e8, 0x61fb, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x04e8, 0x61fd, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x04fc, 0x0c05, Rule::Foreign("usbsunplus"), "opensea-transport, smartmontools drivedb"),
    (0x04fc, 0x0c15, Rule::Foreign("usbsunplus"), "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x04fc, 0x0c25, Rule::Foreign("usbsunplus"), "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x054c, 0x002b, Rule::Foreign("isd200"), "Linux"),
    (0x058f, 0x1234, Rule::NoPassThrough, "opensea-transport"),
    (0x058f, 0x6387, Rule::NoPassThrough, "opensea-transport"),
    (0x058f, 0x9380, Rule::NoPassThrough, "opensea-transport"),
    (0x058f, 0x9381, Rule::NoPassThrough, "opensea-transport"),
    (0x058f, 0x9382, Rule::NoPassThrough, "opensea-transport"),
    (0x059b, 0x0272, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x059b, 0x0274, Rule::Foreign("usbjmicron_port0"), "smartmontools drivedb"),
    (0x059b, 0x0277, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059b, 0x0278, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059b, 0x0370, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x059b, 0x0470, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059b, 0x0475, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059b, 0x0571, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059b, 0x0575, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x059f, 0x0951, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x1010, Rule::Foreign("usbsunplus"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x1019, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x101d, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x1021, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x102a, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x1043, Rule::NoPassThrough, "opensea-transport"),
    (0x059f, 0x1053, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x059f, 0x1064, Rule::NoPassThrough, "opensea-transport"),
    (0x059f, 0x1065, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x059f, 0x10cd, Rule::Tunnel("JMicron"), "opensea-transport"),
    (0x05ab, 0x0031, Rule::Foreign("isd200"), "Linux"),
    (0x05ab, 0x0060, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x05ab, 0x0301, Rule::Foreign("isd200"), "Linux"),
    (0x05ab, 0x0351, Rule::Foreign("isd200"), "Linux"),
    (0x05ab, 0x5701, Rule::Foreign("isd200"), "Linux"),
    (0x05e3, 0x0702, Rule::Hangs, "CrystalDiskInfo, smartmontools drivedb"),
    (0x0634, 0x5603, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x0634, 0x5607, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x067b, 0x2507, Rule::Foreign("usbjmicron_p"), "opensea-transport, smartmontools drivedb"),
    (0x067b, 0x2571, Rule::Foreign("usbprolific"), "opensea-transport, smartmontools drivedb"),
    (0x067b, 0x2771, Rule::Foreign("usbprolific"), "opensea-transport, smartmontools drivedb"),
    (0x067b, 0x2773, Rule::Foreign("usbprolific"), "opensea-transport, smartmontools drivedb"),
    (0x067b, 0x2775, Rule::Foreign("usbprolific"), "opensea-transport, smartmontools drivedb"),
    (0x067b, 0x3507, Rule::Foreign("usbjmicron_p"), "opensea-transport, smartmontools drivedb"),
    (0x0766, 0x0017, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0781, 0x5575, Rule::NoPassThrough, "opensea-transport"),
    (0x0781, 0x5583, Rule::NoPassThrough, "opensea-transport"),
    (0x0781, 0x55ae, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x0781, 0x55af, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x0781, 0x55bb, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x0789, 0x00d9, Rule::Hangs, "CrystalDiskInfo"),
    (0x07ab, 0xfc73, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x07ab, 0xfc85, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x07ab, 0xfc88, Rule::Foreign("usbjmicron_x"), "smartmontools drivedb"),
    (0x07ab, 0xfc8e, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x07ab, 0xfcd6, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x07ab, 0xfcda, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x090c, 0x1000, Rule::NoPassThrough, "opensea-transport"),
    (0x0930, 0x0b03, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0930, 0x0b09, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0930, 0x0b11, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0930, 0xa002, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0939, 0x0b13, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x0939, 0x0b15, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0939, 0x0b16, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0951, 0x177f, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x0b05, 0x1932, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x0bc2, 0x0500, Rule::NoPassThrough, "opensea-transport"),
    (0x0bc2, 0x0501, Rule::Foreign("usbcypress"), "opensea-transport"),
    (0x0bc2, 0x0502, Rule::Foreign("ti"), "opensea-transport"),
    (0x0bc2, 0x0503, Rule::Foreign("usbcypress"), "opensea-transport, smartmontools drivedb"),
    (0x0bc2, 0x0888, Rule::Foreign("nec"), "opensea-transport"),
    (0x0bc2, 0x1000, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2088, Rule::Tunnel("Realtek"), "opensea-transport"),
    (0x0bc2, 0x2100, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2101, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2120, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2300, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2330, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2332, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2400, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x2700, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3000, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3001, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3008, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x0bc2, 0x3010, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3300, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3320, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3330, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x3332, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5020, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5021, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5030, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5031, Rule::Start("sat12"), "opensea-transport, smartmontools drivedb"),
    (0x0bc2, 0x5060, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5070, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5071, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x50a1, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x0bc2, 0x5130, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x5170, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x6126, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0x617a, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xa003, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xa013, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xa014, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xa313, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xaa17, Rule::Tunnel("ASMedia"), "opensea-transport"),
    (0x0bc2, 0xaa1a, Rule::Tunnel("ASMedia"), "opensea-transport, smartmontools drivedb"),
    (0x0bc2, 0xab10, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xab21, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bc2, 0xab31, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x0bda, 0x9210, Rule::Start("sat16,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x0bda, 0x9211, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x0bda, 0x9220, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x0bf6, 0xa001, Rule::Foreign("isd200"), "Linux"),
    (0x0c0b, 0xb001, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x0c0b, 0xb159, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x0d49, 0x5020, Rule::NoPassThrough, "opensea-transport"),
    (0x0d49, 0x7310, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x0d49, 0x7410, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x0d7d, 0x1300, Rule::NoPassThrough, "opensea-transport"),
    (0x0dbf, 0x9001, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x0dd8, 0x9210, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x0e21, 0x0510, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x1006, 0x3002, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x1058, 0x0701, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x1058, 0x266e, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x125f, 0xa93a, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x125f, 0xa94a, Rule::Foreign("usbcypress"), "smartmontools drivedb"),
    (0x13fd, 0x1340, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x13fd, 0x1640, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x13fd, 0x1650, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x13fe, 0x3600, Rule::NoPassThrough, "opensea-transport"),
    (0x13fe, 0x6500, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x152d, 0x0539, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x0551, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x0562, Rule::Start("sat16"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x0567, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x0581, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x152d, 0x0583, Rule::Start("sat16"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x0586, Rule::Start("sat16"), "smartmontools issue 617"),
    (0x152d, 0x2329, Rule::Hangs, "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2336, Rule::Foreign("usbjmicron"), "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2337, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2338, Rule::Hangs, "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2339, Rule::Hangs, "libatasmart 0.19, opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2352, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0x2566, Rule::Foreign("usbjmicron"), "opensea-transport, smartmontools drivedb"),
    (0x152d, 0xa581, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x152d, 0xa583, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x152d, 0xb581, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x174c, 0x2362, Rule::Tunnel("ASMedia"), "opensea-transport, smartmontools drivedb"),
    (0x174c, 0x2364, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x174c, 0x2463, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x18a5, 0x0214, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x18a5, 0x0216, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x18a5, 0x0227, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x18a5, 0x022a, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x18a5, 0x022b, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x18a5, 0x0237, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x1955, 0x0102, Rule::Start("sat,tpsiu"), "opensea-transport"),
    (0x1b1c, 0x1a20, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x1bcf, 0x0c31, Rule::Foreign("usbsunplus"), "opensea-transport, smartmontools drivedb"),
    (0x1ca1, 0x18ae, Rule::NoPassThrough, "opensea-transport"),
    (0x1de1, 0xe101, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x1e3d, 0x2093, Rule::NoPassThrough, "opensea-transport"),
    (0x1e91, 0xde79, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x2109, 0x0700, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x2109, 0x0715, Rule::Start("sat,tpsiu"), "opensea-transport, smartmontools drivedb"),
    (0x2109, 0x2817, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x2174, 0x7010, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x21c4, 0x0003, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x21c4, 0xb06a, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x21c4, 0xb083, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x2e8a, 0x0030, Rule::Start("sat12"), "smartmontools drivedb"),
    (0x2eb9, 0x9211, Rule::Tunnel("Realtek"), "smartmontools drivedb"),
    (0x30de, 0x1000, Rule::Tunnel("JMicron"), "smartmontools drivedb"),
    (0x32ac, 0x0005, Rule::Tunnel("ASMedia"), "smartmontools drivedb"),
    (0x3538, 0x0064, Rule::Foreign("usbsunplus"), "smartmontools drivedb"),
    (0x4971, 0x1011, Rule::Foreign("usbjmicron"), "smartmontools drivedb"),
    (0x4971, 0xce17, Rule::Foreign("usbjmicron_x"), "smartmontools drivedb"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::sat::Sat;

    #[test]
    fn rows_are_sorted_unique_and_mean_something() {
        for pair in ROWS.windows(2) {
            assert!(
                (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1),
                "{:04x}:{:04x}",
                pair[1].0,
                pair[1].1
            );
        }
        for (vid, pid, rule, evidence) in ROWS {
            assert!(!evidence.is_empty(), "{vid:04x}:{pid:04x}");
            if let Rule::Start(name) = rule {
                assert!(Sat::by_name(name).is_some(), "{vid:04x}:{pid:04x}: {name}");
            }
        }
    }

    #[test]
    fn the_dangerous_ones_are_known() {
        assert_eq!(
            lookup(0x152d, 0x0583, 0x0100).map(|q| q.rule),
            Some(Rule::Start("sat16")),
            "A1h is its NVMe opcode"
        );
        assert_eq!(lookup(0x152d, 0x2329, 0x0100).map(|q| q.rule), Some(Rule::Hangs));
        assert_eq!(
            lookup(0x174c, 0x2362, 0x0100).map(|q| q.rule),
            Some(Rule::Tunnel("ASMedia"))
        );
        assert_eq!(lookup(0x174c, 0x55aa, 0x0100), None, "plain SAT needs no row");
        assert_eq!(
            lookup(0x152d, 0x2509, 0x0100).map(|q| q.rule),
            Some(Rule::Foreign("usbjmicron"))
        );
        assert_eq!(
            lookup(0x152d, 0x2509, 0x0107),
            None,
            "a later revision speaks SAT"
        );
    }
}
