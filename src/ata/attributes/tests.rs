use super::*;
use crate::ata::smart::{Attribute, AttributeFlags};
use crate::units::Celsius;

fn attribute(id: u8, value: u8, raw: u64) -> Attribute {
    let bytes = raw.to_le_bytes();
    let [r0, r1, r2, r3, r4, r5, reserved, _] = bytes;
    Attribute {
        id,
        flags: AttributeFlags::empty(),
        value,
        worst: value,
        raw: [r0, r1, r2, r3, r4, r5],
        reserved,
    }
}

const NONE: AttributeTable = AttributeTable {
    rows: &[],
    rotation: Rotation::Unknown,
};

fn packed(raw: u64) -> (String, Option<i16>, Option<(i16, i16)>) {
    let attribute = attribute(194, 100, raw);
    let value = NONE.temperature(&attribute).unwrap();
    (
        NONE.definition(194).format.text(&attribute).to_string(),
        value.celsius.map(|c| c.0),
        value.min.zip(value.max).map(|(min, max)| (min.0, max.0)),
    )
}

#[test]
fn temperatures_are_found_in_every_packing() {
    let cases = [
        // Plain, and sign-extended.
        (0x0000_0000_001f, "31", Some(31), None),
        (0x0000_0000_fffb, "-5", Some(-5), None),
        // R3 and R2, in either order.
        (0x0000_3213_0026, "38 (Min/Max 19/50)", Some(38), Some((19, 50))),
        (0x0000_1332_0026, "38 (Min/Max 19/50)", Some(38), Some((19, 50))),
        (0x0000_32f6_0026, "38 (Min/Max -10/50)", Some(38), Some((-10, 50))),
        // R2 and R1.
        (0x0000_0032_1326, "38 (Min/Max 19/50)", Some(38), Some((19, 50))),
        // R4 and R2, in either order, and with a sign-extended lowest.
        (0x0032_0013_0026, "38 (Min/Max 19/50)", Some(38), Some((19, 50))),
        (0x0013_0032_0026, "38 (Min/Max 19/50)", Some(38), Some((19, 50))),
        (0x002f_ffff_0022, "34 (Min/Max -1/47)", Some(34), Some((-1, 47))),
        // A count above R3 and R2.
        (
            0x0102_3213_0026,
            "38 (Min/Max 19/50 #258)",
            Some(38),
            Some((19, 50)),
        ),
        // Nothing that fits: the lowest byte still counts.
        (0x0011_0000_0026, "38 (0 17 0 0 0)", Some(38), None),
        (0x4e28_2625_0026, "38 (78 40 38 37 0)", Some(38), None),
        (0x0000_1000_2126, "38 (0 0 16 0 33)", Some(38), None),
        // No temperatures.
        (0x0000_0000_0000, "0", None, None),
        (0x0000_0000_00c8, "-56", None, None),
        (0x0000_0000_007e, "126", None, None),
    ];
    for (raw, text, celsius, range) in cases {
        assert_eq!(packed(raw), (text.to_owned(), celsius, range), "{raw:012x}");
    }
}

#[test]
fn models_change_what_is_a_temperature() {
    let celsius = |model: &str, firmware: &str, id: u8, raw: u64| {
        AttributeTable::for_model(model, firmware, Rotation::Unknown)
            .temperature(&attribute(id, 100, raw))
            .and_then(|t| t.celsius)
    };
    // 30.7 and 30.4 degrees.
    assert_eq!(celsius("SAMSUNG SV1204H", "", 194, 0x0133), Some(Celsius(31)));
    assert_eq!(celsius("SAMSUNG SV1204H", "", 194, 0x0130), Some(Celsius(30)));
    assert_eq!(celsius("SAMSUNG SV1203H", "", 194, 0x0133), Some(Celsius(51)));
    assert_eq!(celsius("ADATA SSD S596", "3.4.6", 194, 80), Some(Celsius(40)));
    assert_eq!(celsius("ADATA SSD S596", "3.4.5", 194, 80), Some(Celsius(80)));
    assert_eq!(celsius("Maxtor 4D040H2", "", 194, 35), None);
    assert_eq!(celsius("Maxtor 6Y080L0", "", 194, 35), Some(Celsius(35)));
    assert_eq!(celsius("XF1230-1A0480", "", 190, 30), None);
    assert_eq!(celsius("SDLF1DAR-480G", "", 190, 30), None);
    assert_eq!(celsius("ATP I-Temp M.2 2242", "", 231, 40), Some(Celsius(40)));
    assert_eq!(celsius("KINGSTON SA400S37240G", "SBFK71B1", 231, 93), None);
    let disk = AttributeTable::for_model("OLD DISK", "", Rotation::Rpm(5400));
    assert!(disk.temperature(&attribute(231, 100, 40)).is_some());
}

#[test]
fn hours_come_in_many_units() {
    let hours = |model: &str, raw: u64| {
        let table = AttributeTable::for_model(model, "", Rotation::Unknown);
        let attribute = attribute(9, 100, raw);
        let format = table.definition(9).format;
        let time = format.duration(&attribute).unwrap();
        (time.hours, time.minutes, format.text(&attribute).to_string())
    };
    assert_eq!(hours("", 2460), (2460, None, "2460".to_owned()));
    assert_eq!(
        hours("", 0xd696_0000_022c),
        (556, None, "556 (214 150 0)".to_owned())
    );
    assert_eq!(
        hours("SAMSUNG MP0804H", 557_429),
        (4645, Some(14), "4645h+14m".to_owned())
    );
    assert_eq!(
        hours("Maxtor 6Y080L0", 6001),
        (100, Some(1), "100h+01m".to_owned())
    );
    assert_eq!(
        hours("FUJITSU MHT2060AT", 36061),
        (10, Some(1), "10h+01m+01s".to_owned())
    );
    // 0x323D1Eh = 3292446 ms = 54 min 52.446 s, of which the upper byte is the reserved one.
    assert_eq!(
        hours("KINGSTON SH103S3120G", 0x0032_3d1e_0000_8fa7),
        (36775, Some(54), "36775h+54m+52.446s".to_owned())
    );
}

#[test]
fn hours_of_the_first_indilinx_stand_in_the_normalized_values_too() {
    let table = AttributeTable::for_model("OCZ-VERTEX", "1.7", Rotation::NonRotating);
    let hours = Attribute {
        value: 0x10,
        worst: 0x27,
        ..attribute(9, 0, 0)
    };
    let format = table.definition(9).format;
    assert_eq!(format.number(&hours), 10_000);
    assert_eq!(format.duration(&hours).map(|time| time.hours), Some(10_000));
    assert_eq!(format.text(&hours).to_string(), "10000");
}

#[test]
fn a_barracuda_tells_milliseconds_beside_its_hours() {
    let table = AttributeTable::for_model("ST4000DM004-2CV104", "0001", Rotation::Rpm(5425));
    let raw = attribute(9, 100, 0x0032_d696_0000_0258);
    let format = table.definition(9).format;
    assert_eq!(format.text(&raw).to_string(), "600h+55m+31.734s");
    assert_eq!(format.number(&raw), 0x0032_d696_0000_0258);
    let time = format.duration(&raw).unwrap();
    assert_eq!((time.hours, time.minutes), (600, Some(55)));
}

#[test]
fn ages_of_millennia_are_unknown() {
    let hours = |model: &str, raw: u64| {
        let format = AttributeTable::for_model(model, "", Rotation::Unknown)
            .definition(9)
            .format;
        format.duration(&attribute(9, 100, raw)).map(|time| time.hours)
    };
    assert_eq!(hours("", 0xffff_ffff_ffff), None);
    assert_eq!(hours("SAMSUNG MP0804H", 0xffff_ffff_ffff), None);
    assert_eq!(hours("", 200_000), Some(200_000));
}

/// What one maker calls errors is a count of gigabytes at another: nobody is to be told of damaged transfers there.
#[test]
fn host_reads_and_writes_of_barefoot_are_no_errors() {
    let table = AttributeTable::for_model("OCZ-VERTEX460A", "1.0", Rotation::NonRotating);
    for id in [197, 198, 199] {
        assert_eq!(table.definition(id).meaning, Meaning::Other, "{id}");
    }
    assert_eq!(table.definition(199).name, "Host_Writes_GiB");
    assert_eq!(table.definition(210).meaning, Meaning::LinkErrors);
}

#[test]
fn firmware_tells_lines_of_one_model_apart() {
    let unit = |firmware: &str| {
        AttributeTable::for_model("SAMSUNG SP1614N", firmware, Rotation::Rpm(7200))
            .definition(9)
            .name
    };
    assert_eq!(unit("TM100-24"), "Power_On_Half_Minutes");
    assert_eq!(unit("TM100-30"), "Power_On_Half_Minutes");
    assert_eq!(unit("TM100-36"), "Power_On_Hours");
    let name = |firmware: &str| {
        AttributeTable::for_model("INTENSO SATA III SSD", firmware, Rotation::NonRotating)
            .definition(170)
            .name
    };
    assert_eq!(name("SBFM81.9"), "Bad_Blk_Ct_Erl/Lat");
    assert_eq!(name("V0823A0"), "Unknown_Attribute");
}

#[test]
fn raw_packings_print_as_the_common_tools_do() {
    let text = |format: RawFormat, raw: u64| format.text(&attribute(1, 100, raw)).to_string();
    assert_eq!(text(RawFormat::Raw16Raw16, 0x07d0_0000_0000), "0 (2000 0)");
    assert_eq!(text(RawFormat::Raw16Raw16, 0x0000_002b_002b), "43 (0 43)");
    assert_eq!(text(RawFormat::Raw16Raw16, 5), "5");
    assert_eq!(
        text(RawFormat::Raw16Average16, 0x0006_0138_0133),
        "307 (Average 312)"
    );
    assert_eq!(text(RawFormat::Pair16, 0x01ae), "0/430");
    assert_eq!(text(RawFormat::Raw24Raw24, 0x0000_0200_0001), "2/1");
    assert_eq!(text(RawFormat::Raw24Raw32, 0x0001_0002_0000_0001), "65538/1");
    assert_eq!(text(RawFormat::Words, 0x0003_0002_0001), "3 2 1");
    // The first byte of a number is its most significant; the normalized values of the test are 100.
    const BOTH: &[RawByte] = &[RawByte::R(0), RawByte::Worst, RawByte::Reserved];
    assert_eq!(text(RawFormat::Number(&BOTH), 0x0007_0000_0000_0002), "156679");
    assert_eq!(text(RawFormat::Hex(&BOTH), 0x0007_0000_0000_0002), "0x026407");
    assert_eq!(
        text(
            RawFormat::Pair(&[&[RawByte::R(0)], &[RawByte::R(2), RawByte::R(1)]]),
            0x0001_0203
        ),
        "3/258"
    );
    assert_eq!(text(RawFormat::Minutes, 0x0005_0000_0258), "10h+00m (5)");
    assert_eq!(text(RawFormat::Hex48, 0x000f_000a_000f), "0x000f000a000f");
}

#[test]
fn life_left_is_told_only_by_known_families() {
    let left = |model: &str, id: u8, value: u8, raw: u64| {
        AttributeTable::for_model(model, "", Rotation::NonRotating)
            .life_left_percent(&attribute(id, value, raw))
    };
    assert_eq!(left("KINGSTON SA400S37240G", 231, 7, 93), Some(93));
    assert_eq!(left("Samsung SSD 850 EVO 250GB", 177, 56, 936), Some(56));
    assert_eq!(left("Crucial_CT240M500SSD1", 202, 145, 467), Some(0));
    assert_eq!(left("Micron_5300_MTFDDAK240TDS", 202, 98, 2), Some(98));
    assert_eq!(
        left("WDC  WDS500G2B0A-00SM50", 230, 1, 0x000f_000a_000f),
        Some(100)
    );
    assert_eq!(left("KINGSTON SH103S3120G", 231, 92, 0), Some(92));
    assert_eq!(left("ADATA SP550", 169, 100, 0), None);
    assert_eq!(left("NEW DRIVE", 231, 93, 93), None);
    assert_eq!(left("NEW DRIVE", 177, 93, 93), None);
}

#[test]
fn names_depend_on_the_media() {
    let name = |rotation, id| AttributeTable::for_model("", "", rotation).definition(id).name;
    assert_eq!(name(Rotation::Rpm(7200), 22), "Helium_Level");
    assert_eq!(name(Rotation::NonRotating, 22), "Unknown_SSD_Attribute");
    assert_eq!(name(Rotation::Rpm(7200), 177), "Unknown_HDD_Attribute");
    assert_eq!(name(Rotation::Unknown, 177), "Wear_Leveling_Count");
    assert_eq!(name(Rotation::Unknown, 14), "Unknown_Attribute");
}
