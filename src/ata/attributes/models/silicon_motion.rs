//! Controllers by Silicon Motion, sold under many names.

use super::super::Meaning::{Temperature as Temp, UncorrectableSectors, Wear as Life};
use super::super::RawFormat::{HalfCelsius, Raw48};
use super::super::Wear::LeftRaw;
use super::{Definition, Family, count, row};

const UNCORRECTABLE: Definition = row(160, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors);
/// Raw is percent left where it is filled in.
const LIFE: Definition = row(169, "Remaining_Lifetime_Perc", Raw48, Life(LeftRaw));

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Report: ADATA SP550; later SU lines alike. Replay: the other names.
    Family {
        models: &[
            "ADATA SP5[58]0*", "ADATA SU[5689]??*", "ADATA_IMSS332-*", "CORSAIR FORCE LX SSD", "CHN mSATAM3 *", "CIS 2S M305 *",
            "CT*BX100SSD1", "CT*BX200SSD1", "DREVO X1 SSD", "Drevo X1 pro *", "JAJS500M*", "JAJS600M1TB", "KingDian S*",
            "KingSpec KSD-[PS]A25*", "KINGSTON SKC600*", "LITEON L[MC]H-*", "MKNSSDRE*", "MKNSSDS2*", "MKNSSDTR*", "NFN025SA31T-*",
            "OWC Envoy Pro", "Patriot P200 *", "R3SL*G", "Ramsta SSD S800 *", "SED2QII-LP SATA SSD *", "T60", "TCSUNBOW [MX]3 *",
            "TEAM T253TD*", "TEAML5Lite3D*", "TS*[GT]SSD230*", "TS*[GT]SSD370*", "TS*[GT]SSD420*", "TS*[GT]MSA230*",
            "TS*[GT]MSA370*", "TS*[GT]MSA420*", "TS*GMTS4[03]0*", "TS*GMTS420*", "TS*GSSD220S", "TS*[GT]MTS800*", "TS*GMSA630",
            "TS*GPSD330", "TS*GSSD630", "TS*GSSD360S", "TS*[GT]ESD400K",
        ],
        firmware: "*",
        rows: &[
            count(148, "Total_SLC_Erase_Ct"),
            count(149, "Max_SLC_Erase_Ct"),
            count(150, "Min_SLC_Erase_Ct"),
            count(151, "Average_SLC_Erase_Ct"),
            count(159, "DRAM_1_Bit_Error_Count"),
            UNCORRECTABLE,
            count(161, "Valid_Spare_Block_Cnt"),
            count(163, "Initial_Bad_Block_Count"),
            count(164, "Total_Erase_Count"),
            count(165, "Max_Erase_Count"),
            count(166, "Min_Erase_Count"),
            count(167, "Average_Erase_Count"),
            count(168, "Max_Erase_Count_of_Spec"),
            LIFE,
            count(178, "Runtime_Invalid_Blk_Cnt"),
            count(225, "Host_Writes_32MiB"),
            count(231, "SSD_Life_Left"),
            count(241, "Host_Writes_32MiB"),
            count(242, "Host_Reads_32MiB"),
            count(245, "TLC_Writes_32MiB"),
            count(246, "SLC_Writes_32MiB"),
            count(247, "Raid_Recoverty_Ct"),
            count(248, "Unkn_SiliconMotion_Attr"),
            count(249, "Unkn_SiliconMotion_Attr"),
            count(251, "Unkn_SiliconMotion_Attr"),
        ],
    },
    // Replay: OEM names that only the firmware tells.
    Family { models: OEM, firmware: "KFS03005", rows: OEM_ROWS },
    Family { models: OEM, firmware: "P0510E", rows: OEM_ROWS },
    Family { models: OEM, firmware: "P0725A", rows: OEM_ROWS },
    Family { models: OEM, firmware: "[QST][01]???A0", rows: OEM_ROWS },
    Family { models: OEM, firmware: "[RS][01]???B0", rows: OEM_ROWS },
    Family { models: OEM, firmware: "SOB20R", rows: OEM_ROWS },
    // Field: this firmware counts half degrees.
    Family { models: &["ADATA SSD*"], firmware: "3*4*6*", rows: &[row(194, "Temperature_Celsius", HalfCelsius, Temp)] },
    // Replay: Supermicro SATA DOM.
    Family {
        models: &["SuperMicro SSD"],
        firmware: "*",
        rows: &[
            count(15, "User_Cpcty_Sector_Cnt"),
            count(160, "Not_In_Use"),
            count(161, "Not_In_Use"),
            count(163, "Not_In_Use"),
            count(164, "Not_In_Use"),
            count(165, "Not_In_Use"),
            count(166, "Minimum_PE_Cycles_TLC"),
            count(167, "Not_In_Use"),
            count(168, "Maximum_PE_Cycles_TLC"),
            count(231, "SSD_Life_Left"),
            count(233, "NAND_Writes_1GiB"),
            count(241, "Lifetime_Writes_GiB"),
            count(242, "Lifetime_Reads_GiB"),
        ],
    },
    // Replay: StorFly CFast.
    Family {
        models: &["StorFly VSFCS2C[CI]*"],
        firmware: "*",
        rows: &[
            UNCORRECTABLE,
            count(161, "Spares_Remaining"),
            count(169, "Lifetime_Remaining%"),
            count(192, "Unsafe_Shutdown_Count"),
            count(241, "Host_Writes_32MiB"),
            count(242, "Host_Reads_32MiB"),
            count(248, "Lifetime_Remaining%"),
            count(249, "Spares_Remaining_Perc"),
        ],
    },
    // Field: YMTC firmware has its sensor in 243.
    Family {
        models: &["ZHITAI*", "YMTC*"],
        firmware: "*",
        rows: &[row(243, "Temperature_Celsius", super::super::RawFormat::Temperature, Temp)],
    },
];

const OEM: &[&str] = &[
    "240GB",
    "Dogfish SSD *",
    "INTENSO*",
    "Intenso*",
    "KingFast*",
    "LDLC*",
    "SATA3 *B SSD",
    "SPCC M.2 SSD",
];

#[rustfmt::skip]
static OEM_ROWS: &[Definition] = &[
    count(148, "Total_SLC_Erase_Ct"),
    count(149, "Max_SLC_Erase_Ct"),
    count(150, "Min_SLC_Erase_Ct"),
    count(151, "Average_SLC_Erase_Ct"),
    count(159, "Unkn_SiliconMotion_Attr"),
    UNCORRECTABLE,
    count(161, "Valid_Spare_Block_Cnt"),
    count(163, "Initial_Bad_Block_Count"),
    count(164, "Total_Erase_Count"),
    count(165, "Max_Erase_Count"),
    count(166, "Min_Erase_Count"),
    count(167, "Average_Erase_Count"),
    count(168, "Max_Erase_Count_of_Spec"),
    LIFE,
    count(178, "Runtime_Invalid_Blk_Cnt"),
    count(225, "Host_Writes_32MiB"),
    count(241, "Host_Writes_32MiB"),
    count(242, "Host_Reads_32MiB"),
    count(245, "TLC_Writes_32MiB"),
    count(246, "SLC_Writes_32MiB"),
    count(247, "Raid_Recoverty_Ct"),
    count(248, "Unkn_SiliconMotion_Attr"),
    count(251, "Unkn_SiliconMotion_Attr"),
];
