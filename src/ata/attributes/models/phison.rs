//! Controllers by Phison, sold under many names.

use super::super::Meaning::{LinkErrors, Other, ReallocatedSectors, Wear as Life};
use super::super::RawFormat::{Hex, Hex48, Pair16, Raw16Average16, Raw48, Words};
use super::super::Wear::LeftRaw;
use super::super::raw::BYTES_64;
use super::{Definition, Family, count, row};

/// 231 raw is percent left, also where the normalized value stays at 100 or counts used.
const LIFE: Definition = row(231, "SSD_Life_Left", Raw48, Life(LeftRaw));

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Capture: Kingston A400 (2.5" and M.2), Gigabyte, Patriot Burst, Silicon Power with Phison S11 firmware.
    // Replay: the other names.
    Family {
        models: &[
            "KINGSTON SA400*", "KINGSTON  SA400*", "GIGABYTE GP-GSTF*", "Patriot Burst*", "Patriot Flare*", "Patriot Blast*",
            "Patriot Blaze*", "KINGSTON O[CM]*P0S3*", "KINGSTON SEDC400S37*", "KINGSTON SEDC450R*", "KINGSTON SEDC500[MR]*",
            "KINGSTON SUV300S37A*", "KINGSTON SKC310S3*", "KINGSTON SKC400S37*", "KINGSTON SV310S3*", "KINGSTON SHSS3*",
            "BP4 mSATA SSD", "Corsair Force LE200 SSD", "GOODRAM IRIDIUM PRO", "IR-SSDPR-S25A-*", "PNY CS900 *",
            "PNY CS[12][32]11 *", "SSD Smartbuy *", "SSD PHISON *", "SSDPR-CX400-*", "TEAM L3 EVO SSD *",
            "SSM28???GPTCB3B-S11*",
        ],
        firmware: "*",
        rows: PHISON,
    },
    // Replay: IronWolf Pro 125.
    Family {
        models: &["Seagate IronWolfPro ZA*"],
        firmware: "*",
        rows: &[
            count(16, "Spare_Blocks_Available"),
            count(17, "Spare_Blocks_Remaining"),
            row(168, "SATA_PHY_Error_Count", Raw48, LinkErrors),
            row(170, "Early/Later_Bad_Blck_Ct", Words, Other),
            row(173, "Max/Avg/Min_Erase_Ct", Words, Other),
            count(174, "Unexpect_Power_Loss_Ct"),
            row(177, "Wear_Range_Delta", Words, Other),
            row(218, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            count(231, "SSD_Life_Left"),
            row(232, "Read_Failure_Blk_Ct", Hex48, Other),
            count(233, "Flash_Writes_GiB"),
            count(234, "NAND_Reads_Sectors"),
            count(235, "Flash_Writes_Sectors"),
            count(241, "Host_Writes_GiB"),
            count(242, "Host_Reads_GiB"),
            row(246, "Write_Protect_Detail", Hex(&BYTES_64), Other),
            count(247, "Health_Check_Timer"),
        ],
    },
    // Replay: Xmore.
    Family {
        models: &["CFAST???[GT]XA*", "M2[AC]A???[GT]XA*", "MSATA???[GT]XA*", "SSD???[GT]XA*"],
        firmware: "*",
        rows: &[
            row(168, "SATA_Phy_Error_Count", Raw48, LinkErrors),
            count(169, "Bad_Block_Rate"),
            row(170, "Bad_Blk_Ct_Lat/Erl", Pair16, Other),
            row(173, "MaxAvgErase_Ct", Raw16Average16, Other),
            count(192, "Unexpect_Power_Loss_Ct"),
            row(218, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            count(231, "Percent_Lifetime_Remain"),
            count(241, "Host_Writes_GiB"),
        ],
    },
    // Report: Apacer AS340.
    Family {
        models: &["Apacer AS340*"],
        firmware: "*",
        rows: &[
            count(163, "Max_Erase_Count"),
            count(164, "Average_Erase_Count"),
            count(166, "Later_Bad_Block_Count"),
            count(167, "SSD_Protect_Mode"),
            row(168, "SATA_PHY_Error_Count", Raw48, LinkErrors),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(175, "Bad_Cluster_Table_Count"),
            count(192, "Unexpect_Power_Loss_Ct"),
            count(231, "Lifetime_Left"),
        ],
    },
    // Replay: Apacer's modules, told apart by firmware.
    Family {
        models: &["*GB SATA Flash Drive"],
        firmware: "SFDDA01C",
        rows: APACER_SDM4,
    },
    Family {
        models: &["*GB SATA Flash Drive"],
        firmware: "SFI2101D",
        rows: APACER_SDM4,
    },
    Family {
        models: &["*GB SATA Flash Drive"],
        firmware: "SFD[KE]00[41]A",
        rows: &[
            count(163, "Max_Erase_Count"),
            count(164, "Average_Erase_Count"),
            count(166, "Grown_Bad_Block_Count"),
            count(167, "SSD_Write_Protect_Mode"),
            row(168, "SATA_PHY_Err_Ct", Raw48, LinkErrors),
            count(175, "Bad_Cluster_Table_Count"),
            count(192, "Unexpect_Power_Loss_Ct"),
        ],
    },
    Family {
        models: &["*[GT]B SATA Flash Drive", "S[GH]250-M2* 128GB SSD"],
        firmware: "SFM[BC]*",
        rows: &[
            count(163, "Maximum_Erase_Count"),
            count(164, "Average_Erase_Count"),
            count(166, "Total_Later_Bad_Blk_Ct"),
            count(167, "SSD_Protect_Mode"),
            row(168, "SATA_PHY_Error_Count", Raw48, LinkErrors),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(175, "Bad_Cluster_Table_Ct"),
            count(192, "Unexpect_Power_Loss_Ct"),
            count(231, "Lifetime_Left"),
        ],
    },
    // Capture: Silicon Power. Replay: other OEM names, which only the firmware tells.
    Family {
        models: &["GOODRAM*", "Hoodisk SSD*", "INTENSO*", "SATA SSD", "SPCC Solid State Disk*"],
        firmware: "S[89AB]FM*",
        rows: &[
            count(2, "Not_In_Use"),
            count(3, "Not_In_Use"),
            row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
            count(7, "Not_In_Use"),
            count(8, "Not_In_Use"),
            count(10, "Not_In_Use"),
            row(168, "SATA_Phy_Error_Count", Raw48, LinkErrors),
            row(170, "Bad_Blk_Ct_Erl/Lat", Pair16, Other),
            row(173, "MaxAvgErase_Ct", Raw16Average16, Other),
            count(175, "Not_In_Use"),
            count(183, "Unknown_Attribute"),
            count(192, "Unsafe_Shutdown_Count"),
            count(196, "Not_In_Use"),
            count(197, "Not_In_Use"),
            row(199, "CRC_Error_Count", Raw48, LinkErrors),
            row(218, "CRC_Error_Count", Raw48, LinkErrors),
            LIFE,
            count(233, "Flash_Writes_GiB"),
            count(240, "Not_In_Use"),
            count(241, "Lifetime_Writes_GiB"),
            count(242, "Lifetime_Reads_GiB"),
            count(244, "Average_Erase_Count"),
            count(245, "Max_Erase_Count"),
            count(246, "Total_Erase_Count"),
        ],
    },
    // Field: such firmware is Phison's under any name.
    Family { models: &["*"], firmware: "SBF[KM]*", rows: PHISON },
];

#[rustfmt::skip]
static APACER_SDM4: &[Definition] = &[
    count(160, "Initial_Bad_Block_Count"),
    count(161, "Bad_Block_Count"),
    count(162, "Spare_Block_Count"),
    count(163, "Max_Erase_Count"),
    count(164, "Average_Erase_Count"),
    count(165, "Average_Erase_Count"),
];

#[rustfmt::skip]
static PHISON: &[Definition] = &[
    count(2, "Not_In_Use"),
    count(3, "Not_In_Use"),
    row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
    count(7, "Not_In_Use"),
    count(8, "Not_In_Use"),
    count(10, "Not_In_Use"),
    count(167, "Write_Protect_Mode"),
    row(168, "SATA_Phy_Error_Count", Raw48, LinkErrors),
    count(169, "Bad_Block_Rate"),
    row(170, "Bad_Blk_Ct_Erl/Lat", Pair16, Other),
    count(172, "Erase_Fail_Count"),
    row(173, "MaxAvgErase_Ct", Raw16Average16, Other),
    count(175, "Not_In_Use"),
    count(181, "Program_Fail_Count"),
    count(182, "Erase_Fail_Count"),
    count(183, "Unknown_Phison_Attr"),
    count(192, "Unsafe_Shutdown_Count"),
    count(193, "Power_Fail_Uncompl_Cnt"),
    count(195, "Power_Fail_Health"),
    count(197, "Not_In_Use"),
    row(199, "SATA_CRC_Error_Count", Raw48, LinkErrors),
    count(207, "Thermal_Throttling_Cnt"),
    row(218, "CRC_Error_Count", Raw48, LinkErrors),
    LIFE,
    count(232, "Read_Fail_Count"),
    count(233, "Flash_Writes_GiB"),
    count(240, "Not_In_Use"),
    count(241, "Lifetime_Writes_GiB"),
    count(242, "Lifetime_Reads_GiB"),
    count(244, "Average_Erase_Count"),
    count(245, "Max_Erase_Count"),
    count(246, "Total_Erase_Count"),
];
