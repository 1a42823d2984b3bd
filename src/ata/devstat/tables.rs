//! Names and sizes of the statistics (ACS-4 and ACS-5, "Device Statistics log", page by page).

/// One statistic of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub name: &'static str,
    pub size_bytes: u8,
    pub celsius: bool,
}

const fn e(size_bytes: u8, name: &'static str) -> Entry {
    Entry {
        name,
        size_bytes,
        celsius: false,
    }
}

const fn temp(name: &'static str) -> Entry {
    Entry {
        name,
        size_bytes: 1,
        celsius: true,
    }
}

// Entry n of a table stands at offset 8 (n + 1) of its page.

static GENERAL: [Entry; 12] = [
    e(4, "Lifetime Power-On Resets"),
    e(4, "Power-on Hours"),
    e(6, "Logical Sectors Written"),
    e(6, "Number of Write Commands"),
    e(6, "Logical Sectors Read"),
    e(6, "Number of Read Commands"),
    e(6, "Date and Time TimeStamp"),
    e(4, "Pending Error Count"),
    e(2, "Workload Utilization"),
    e(6, "Utilization Usage Rate"),
    e(7, "Resource Availability"),
    e(1, "Random Write Resources Used"),
];

static FREE_FALL: [Entry; 2] = [
    e(4, "Number of Free-Fall Events Detected"),
    e(4, "Overlimit Shock Events"),
];

static ROTATING: [Entry; 8] = [
    e(4, "Spindle Motor Power-on Hours"),
    e(4, "Head Flying Hours"),
    e(4, "Head Load Events"),
    e(4, "Number of Reallocated Logical Sectors"),
    e(4, "Read Recovery Attempts"),
    e(4, "Number of Mechanical Start Failures"),
    e(4, "Number of Realloc. Candidate Logical Sectors"),
    e(4, "Number of High Priority Unload Events"),
];

static ERRORS: [Entry; 3] = [
    e(4, "Number of Reported Uncorrectable Errors"),
    e(4, "Resets Between Cmd Acceptance and Completion"),
    e(4, "Physical Element Status Changed"),
];

static TEMPERATURE: [Entry; 13] = [
    temp("Current Temperature"),
    temp("Average Short Term Temperature"),
    temp("Average Long Term Temperature"),
    temp("Highest Temperature"),
    temp("Lowest Temperature"),
    temp("Highest Average Short Term Temperature"),
    temp("Lowest Average Short Term Temperature"),
    temp("Highest Average Long Term Temperature"),
    temp("Lowest Average Long Term Temperature"),
    e(4, "Time in Over-Temperature"),
    temp("Specified Maximum Operating Temperature"),
    e(4, "Time in Under-Temperature"),
    temp("Specified Minimum Operating Temperature"),
];

static TRANSPORT: [Entry; 3] = [
    e(4, "Number of Hardware Resets"),
    e(4, "Number of ASR Events"),
    e(4, "Number of Interface CRC Errors"),
];

static SOLID_STATE: [Entry; 1] = [e(1, "Percentage Used Endurance Indicator")];

static ZONED: [Entry; 11] = [
    e(4, "Maximum Open Zones"),
    e(4, "Maximum Explicitly Open Zones"),
    e(4, "Maximum Implicitly Open Zones"),
    e(4, "Minimum Empty Zones"),
    e(4, "Maximum Non-sequential Zones"),
    e(4, "Zones Emptied"),
    e(4, "Suboptimal Write Commands"),
    e(4, "Commands Exceeding Optimal Limit"),
    e(4, "Failed Explicit Opens"),
    e(4, "Read Rule Violations"),
    e(4, "Write Rule Violations"),
];

static VENDOR: Entry = e(7, "Vendor Specific");

/// The name of a page.
pub(super) fn page_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0x00 => "List of supported log pages",
        0x01 => "General Statistics",
        0x02 => "Free-Fall Statistics",
        0x03 => "Rotating Media Statistics",
        0x04 => "General Errors Statistics",
        0x05 => "Temperature Statistics",
        0x06 => "Transport Statistics",
        0x07 => "Solid State Device Statistics",
        0x08 => "Zoned Device Statistics",
        0xff => "Vendor Specific Statistics",
        _ => return None,
    })
}

/// What stands at an offset of a page.
pub(super) fn entry(page: u8, offset_bytes: u16) -> Option<Entry> {
    let table: &[Entry] = match page {
        0x01 => &GENERAL,
        0x02 => &FREE_FALL,
        0x03 => &ROTATING,
        0x04 => &ERRORS,
        0x05 => &TEMPERATURE,
        0x06 => &TRANSPORT,
        0x07 => &SOLID_STATE,
        0x08 => &ZONED,
        0xff => return Some(VENDOR),
        _ => return None,
    };
    let n = usize::from(offset_bytes / 8).checked_sub(1)?;
    table.get(n).copied()
}
