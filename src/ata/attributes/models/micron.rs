//! Crucial, Micron and Lexar SSDs.

use super::super::Meaning::{Other, PendingSectors, ReallocatedSectors, Wear as Life};
use super::super::RawFormat::{Raw16Raw16, Raw48, Words};
use super::super::Wear::UsedRaw;
use super::{Family, count, row};

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Replay: RealSSD C300 and P300.
    Family {
        models: &["C300-CTFDDA*", "P300-MTFDDAC*"],
        firmware: "*",
        rows: &[
            count(170, "Grown_Failing_Block_Ct"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Wear_Leveling_Count"),
            count(174, "Unexpect_Power_Loss_Ct"),
            row(181, "Non4k_Aligned_Access", Words, Other),
            count(183, "SATA_Iface_Downshift"),
            count(189, "Factory_Bad_Block_Ct"),
            row(202, "Percent_Lifetime_Used", Raw48, Life(UsedRaw)),
            count(206, "Write_Error_Rate"),
        ],
    },
    // Replay: m4, C400, P400.
    Family {
        models: &["C400-MTFDDA*", "M4-CT*", "MTFDDA[AK]???MA[MNR]-1[JKS]1*"],
        firmware: "*",
        rows: &[
            count(170, "Grown_Failing_Block_Ct"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Wear_Leveling_Count"),
            count(174, "Unexpect_Power_Loss_Ct"),
            row(181, "Non4k_Aligned_Access", Words, Other),
            count(183, "SATA_Iface_Downshift"),
            count(189, "Factory_Bad_Block_Ct"),
            row(202, "Perc_Rated_Life_Used", Raw48, Life(UsedRaw)),
            count(206, "Write_Error_Rate"),
            count(225, "Unknown_Marvell_Attr"),
            count(231, "Unknown_Marvell_Attr"),
            count(242, "Host_Reads"),
        ],
    },
    // Capture: Micron 5300. Replay: 5100, 5200 and 5210 alike.
    Family {
        models: &["Micron_5[123]*", "MTFDDA[KV]*TBY*", "MTFDDA[KV]*TC[BC]*", "MTFDDA[KV]*TD[CDNST]*", "EEFDDA[KV]*TBY*", "EEFDDA[KV]*TC[BC]*"],
        firmware: "*",
        rows: &[
            row(5, "Reallocated_Sector_Ct", Raw16Raw16, ReallocatedSectors),
            count(170, "Reserved_Block_Pct"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Avg_Block-Erase_Count"),
            count(174, "Unexpect_Power_Loss_Ct"),
            count(183, "SATA_Int_Downshift_Ct"),
            row(202, "Percent_Lifetime_Remain", Raw48, Life(UsedRaw)),
            count(206, "Write_Error_Rate"),
            count(210, "RAIN_Success_Recovered"),
            count(211, "Integ_Scan_Complete_Cnt"),
            count(212, "Integ_Scan_Folding_Cnt"),
            count(213, "Integ_Scan_Progress"),
            count(246, "Total_LBAs_Written"),
            count(247, "Host_Program_Page_Count"),
            count(248, "Bckgnd_Program_Page_Cnt"),
        ],
    },
    // Capture: a Micron SSD of this kind. Report: Crucial M500, where 202 raw has passed 100.
    Family {
        models: &[
            "Crucial_CT???M[5X]*", "Crucial_CT????M[5X]*", "CT???BX300SSD1", "CT*BX500SSD1*", "CT*MX500SSD*",
            "Micron_M5*", "MICRON_M5*", "Micron_M6*", "Micron_1[13]00*", "Micron 1100 SATA*", "M500IT*", "Micron M500IT*",
            "M5[15]0[_-]MTFDDA*", "MTFDDA[KTV]*MA[MVYZ]*", "MTFDDA[KTVY]*MBF*", "EEFDDA[KTV]*MBF*", "MTFDDA[KV]*TBN*",
            "MTFDDA[KV]*TDL*", "EEFDDA[KV]*TDL*",
        ],
        firmware: "*",
        rows: &[
            row(5, "Reallocate_NAND_Blk_Cnt", Raw48, ReallocatedSectors),
            count(170, "Reserved_Block_Count"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Ave_Block-Erase_Count"),
            count(174, "Unexpect_Power_Loss_Ct"),
            count(180, "Unused_Reserve_NAND_Blk"),
            count(183, "SATA_Interfac_Downshift"),
            count(184, "Error_Correction_Count"),
            count(195, "Cumulativ_Corrected_ECC"),
            row(197, "Current_Pending_ECC_Cnt", Raw48, PendingSectors),
            row(202, "Percent_Lifetime_Remain", Raw48, Life(UsedRaw)),
            count(206, "Write_Error_Rate"),
            count(210, "Success_RAIN_Recov_Cnt"),
            count(223, "Unkn_CrucialMicron_Attr"),
            count(246, "Total_LBAs_Written"),
            count(247, "Host_Program_Page_Count"),
            count(248, "FTL_Program_Page_Count"),
            count(249, "Unkn_CrucialMicron_Attr"),
            count(251, "Unkn_CrucialMicron_Attr"),
            count(252, "Unkn_CrucialMicron_Attr"),
            count(253, "Unkn_CrucialMicron_Attr"),
            count(254, "Unkn_CrucialMicron_Attr"),
        ],
    },
    // Replay: Lexar of the Phison kind with names of its own.
    Family {
        models: &["Lexar 128GB SSD"],
        firmware: "*",
        rows: &[
            row(5, "New_Bad_Blk_Cnt", Raw48, ReallocatedSectors),
            count(167, "SSD_Protect_mode"),
            count(168, "SATA_PHY_Error_Cnt"),
            count(169, "Bad_Block_Cnt"),
            count(171, "Program_Fail_Cnt"),
            count(172, "Erase_Fail_Cnt"),
            count(173, "Erase_Cnt"),
            count(175, "Bad_Cluster_Cnt"),
            count(177, "Read_Retry_Cnt"),
            count(180, "Spare_Blk_Cnt_Left"),
            count(206, "Min_Erase_Cnt"),
            count(207, "Max_Erase_Cnt"),
            count(208, "Avg_Erase_Cnt"),
            count(209, "SLC_Min_Erase_Cnt"),
            count(210, "SLC_Max_Erase_Cnt"),
            count(211, "SLC_Avg_Erase_Cnt"),
            count(231, "SSD_Life_Left"),
            count(245, "Bit_Error_Cnt"),
        ],
    },
];
