//! Seagate disks and SSDs.

use super::super::Meaning::{LinkErrors, Other, PowerOnTime, UncorrectableSectors};
use super::super::RawFormat::{Hex, HoursMilliseconds, Number, Raw16Raw16, Raw48, Words};
use super::super::raw::BYTES_56;
use super::{Definition, Family, count, row};

const FLYING: Definition = row(240, "Head_Flying_Hours", HoursMilliseconds, Other);
const HOURS: Definition = row(9, "Power_On_Hours", HoursMilliseconds, PowerOnTime);
const TIMEOUTS: Definition = row(188, "Command_Timeout", Words, Other);
const PRESSURE: Definition = count(200, "Pressure_Limit");
const HEADS: Definition = count(18, "Head_Health");

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Replay: BarraCuda 3.5 with shingled recording counts its hours to the millisecond, the others whole hours.
    Family {
        models: &["ST2000DM00[589]-*", "ST3000DM007-*", "ST4000DM00[45]-*", "ST6000DM003-*", "ST8000DM004-*"],
        firmware: "*",
        rows: &[HOURS, TIMEOUTS, PRESSURE, FLYING],
    },
    // Replay: BarraCuda 3.5 with conventional recording, Enterprise Capacity 3.5.
    Family {
        models: &[
            "ST500DM009-*", "ST1000DM010-*", "ST2000DM00[67]-*", "ST3000DM00[89]-*", "ST4000DM006-*", "ST6000DM004-*",
            "ST8000DM005-*", "ST10000DM0004-*", "ST12000DM0007-*", "ST[1234568]000NM0[01][01234568][456]-*",
            "ST10000NM0[01][01234568][456]-*",
        ],
        firmware: "*",
        rows: &[TIMEOUTS, PRESSURE, FLYING],
    },
    // Replay: Barracuda 7200.14, Desktop HDD.15 and SSHD. 188 counts three kinds of slow commands.
    Family {
        models: &[
            "ST???DM00[0123]-*", "ST[123][05]00DM00[0123]-*", "ST[4568]000DM00[012]-*", "ST[124]000DX001-*",
            "APPLE HDD ST3000DM001",
        ],
        firmware: "*",
        rows: &[TIMEOUTS, FLYING],
    },
    // Capture: FireCuda ST1000LX015. Replay: FireCuda 3.5.
    Family {
        models: &["ST500LX0[012][15]-*", "ST[12]000LX0[012][15]-*", "ST[12]000DX002-*"],
        firmware: "*",
        rows: &[FLYING],
    },
    // Replay: Barracuda 2.5.
    Family {
        models: &["ST5000LM000-*", "ST[34]000LM024-*", "ST2000LM015-*", "ST1000LM048-*", "ST500LM030-*"],
        firmware: "*",
        rows: &[count(183, "SATA_Downshift_Count")],
    },
    // Replay: Enterprise Capacity 3.5 of 2015.
    Family { models: &["ST[12]000NM0008-*"], firmware: "*", rows: &[HOURS, TIMEOUTS, FLYING] },
    // Replay: Exos 5E8, Skyhawk.
    Family {
        models: &[
            "ST8000AS0003-*", "ST1000VX005-*", "ST2000VX008-*", "ST3000VX0[01][09]-*", "ST4000VX007-*",
            "ST6000VX00[012]*-*", "ST8000VX00[042]*-*",
        ],
        firmware: "*",
        rows: &[HOURS, FLYING],
    },
    // Replay: Exos 7E8.
    Family { models: &["ST[123468]000NM0[012][012345689]A-*"], firmware: "*", rows: &[HEADS, FLYING] },
    // Replay: Exos X12.
    Family { models: &["ST12000NM00[01]7-*"], firmware: "*", rows: &[PRESSURE, FLYING] },
    // Replay: Exos X14 and X16, IronWolf, IronWolf Pro.
    Family {
        models: &[
            "ST1[024]000NM0[0245][0123456]8-*", "ST10000NM0478-*", "ST1[0246]000NM00[13]G-*", "ST*000VN00[1247]-*", "ST*000VN008-*",
            "ST*000VN000[478]-*", "ST1*000VN0002-*", "ST*000VN0022-*", "ST*000VN0033-*", "ST*000VN0041-*", "ST[24]000NE0025-*", "ST4000NE001-*",
            "ST6000NE0023-*", "ST8000NE000[48]-*", "ST8000NE0021-*", "ST1[024]000NE000[478]-*", "ST16000NE000-*",
        ],
        firmware: "*",
        rows: &[HEADS, PRESSURE, FLYING],
    },
    // Replay: 190 of Nytro XF1230 counts link errors.
    Family {
        models: &["XF1230-*", "Seagate Nytro XF1230*"],
        firmware: "*",
        rows: &[
            count(174, "Unexpect_Power_Loss_Ct"),
            count(180, "End_to_End_Err_Detect"),
            count(183, "SATA_Downshift_Count"),
            count(189, "SSD_Health_Flags"),
            row(190, "SATA_Error_Ct", Raw48, LinkErrors),
            count(201, "Read_Error_Rate"),
            count(231, "SSD_Life_Left_Perc"),
            count(234, "Lifetime_Nand_Gb"),
            count(241, "Total_Writes_GiB"),
            count(242, "Total_Reads_GiB"),
            count(245, "Read_Error_Rate"),
        ],
    },
    // Replay: IronWolf 110, Nytro.
    Family {
        models: &["ZA*NM10001*", "XA*[LM]E10???*"],
        firmware: "*",
        rows: &[
            count(100, "Flash_GB_Erased"),
            count(102, "Lifetime_PS4_Entry_Ct"),
            count(103, "Lifetime_PS3_Exit_Ct"),
            count(170, "Grown_Bad_Block_Ct"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Avg_Program/Erase_Ct"),
            count(174, "Unexpected_Pwr_Loss_Ct"),
            row(177, "Wear_Range_Delta", Words, Other),
            row(183, "SATA_Downshift_Count", Hex(&BYTES_56), Other),
            row(187, "Uncorrectable_ECC_Ct", Raw48, UncorrectableSectors),
            row(195, "RAISE_ECC_Cor_Ct", Raw16Raw16, Other),
            row(198, "Uncor_Read_Error_Ct", Raw48, UncorrectableSectors),
            row(230, "Drv_Life_Protect_Status", Number(&BYTES_56), Other),
            row(231, "SSD_Life_Left", Hex(&BYTES_56), Other),
            count(233, "Lifetime_Wts_To_Flsh_GB"),
            count(241, "Lifetime_Wts_Frm_Hst_GB"),
            count(242, "Lifetime_Rds_Frm_Hst_GB"),
            row(243, "Free_Space", Hex(&BYTES_56), Other),
        ],
    },
];
