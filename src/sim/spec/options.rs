//! The options after a profile's name, in words.

/// Options with what they do, in the order of their names.
pub const OPTIONS: &[(&str, &str)] = &[
    (
        "amac",
        "1: the drive limits its capacity by ACCESSIBLE MAX ADDRESS CONFIGURATION, not by a host protected area",
    ),
    ("ambient", "air temperature in °C, -40 to 80"),
    (
        "bad",
        "LBA+COUNT: sectors of the drive that cannot be read until they are written; may be given again",
    ),
    (
        "becoming_ready",
        "the first N commands answer 02/04/01, becoming ready",
    ),
    (
        "bridge",
        "the bridge in front of the drive: asm1051-usb2, asm1051e, asm1053e, asm1153e, asm225cm, jms567, jms578, \
         phison-stick, rtl9201, stick, vl716",
    ),
    (
        "capacity",
        "blocks that the bridge claims, whatever the drive has",
    ),
    (
        "ckcond",
        "CK_COND on success: honour, ignore (GOOD), empty (zero registers) or refuse (05/24/00)",
    ),
    (
        "encrypt",
        "1: the bridge encrypts what it writes, so that the drive holds other bytes than the host sees",
    ),
    ("ext", "0: the bridge refuses 48-bit commands; 1: it takes them"),
    (
        "fake_4k",
        "1: the bridge makes one block of 4096 bytes out of eight sectors of the drive",
    ),
    (
        "fault",
        "zero-success, echo, timeout (until reset), late (61 s), gone, replug (off the bus and back), short, bad-checksum, \
         swapped, garbage-temp, error (04/44/00, nothing done); of writes: torn-write (half of it stored), lost-write (nothing stored); on USB also stall, \
         csw-tag, csw-residue, phase-error, babble, hang (until reset), die-after-vendor (a vendor command kills the next read)",
    ),
    (
        "fault_after",
        "so many commands that it could strike pass before the fault does",
    ),
    ("fault_count", "how often the fault strikes; without it, always"),
    (
        "fault_on",
        "commands that the fault strikes: pass-through (default), read, write, trim (UNMAP, WRITE SAME, DATA SET MANAGEMENT) or any",
    ),
    (
        "health",
        "good, failing (SMART status bad) or worn (endurance used up)",
    ),
    (
        "link",
        "what it hangs on: usb2, usb3, usb10g, usb20g, or a link that the profile knows",
    ),
    (
        "log_temperature",
        "1: the bridge has LOG SENSE page 0Dh, temperature",
    ),
    (
        "payload",
        "keep (default): written data is held; virtual: only where; drop: nothing. Virtual data reads as made-up bytes",
    ),
    ("power", "state at the start: active, idle, standby or sleep"),
    ("sat", "ATA PASS-THROUGH CDBs taken: both, 16, 12 or none"),
    ("seed", "number that starts the random source"),
    (
        "sense",
        "pass-through results as descriptor or fixed sense data, or empty",
    ),
    (
        "sense_cap",
        "sense bytes that reach the host: full, 18, or learn (18 until the host knows better)",
    ),
    ("serial", "serial number of the inner drive"),
    (
        "shift",
        "blocks by which the bridge moves addresses: block 0 of the host is that sector of the drive, the end wraps around",
    ),
    ("speed", "of the USB link, in Mbit/s: 480, 5000 or 10000"),
    (
        "store",
        "path of a sparse file that holds the medium; made if missing",
    ),
    (
        "swap_after",
        "after so many commands another drive of the same model is in the bridge, with another serial number",
    ),
    ("temp", "pins the sensor to this many °C, -60 to 127"),
    (
        "transport",
        "bot: no UAS setting; uas: one with 32 streams even if the bridge has none",
    ),
    (
        "trim",
        "trimmed sectors read as zero, ones, or what was there (keep); ignore: TRIM does nothing; \
         neighbour: it takes one sector too many; pages, wide: it takes all of \
         each 8 or 128 sectors that it touches; false-zero: zeroes are promised, and ones are read",
    ),
    (
        "unit_attention",
        "1: the first command answers 06/29/00, power on or reset",
    ),
    (
        "unknown",
        "what an unknown opcode meets: sense (05/20/00) or stall (of the pipe, then that sense)",
    ),
    ("usb_serial", "serial number in the USB descriptors"),
];
