//! Attributes by drive family, where they differ from the generic rows.
//!
//! Rows are facts with their evidence: "capture" is a sector of such a drive that was decoded by an independent tool
//! with the same result, "report" the printed output of one, "field" the common knowledge of public tools.

use super::Meaning::Wear as Life;
use super::Meaning::{
    LinkErrors, Other, PendingSectors, PowerOnTime, ReallocatedSectors, Temperature as Temp,
    UncorrectableSectors,
};
use super::RawFormat::{
    HalfCelsius, HalfMinutes, Hex48, HoursMilliseconds, Minutes, Pair16, Raw16Average16, Raw16Raw16,
    Raw16Raw32, Raw24Raw8, Raw24Raw24, Raw48, Seconds, Temperature, TenthsCelsius,
};
use super::Wear::{LeftNormalized, LeftRaw, UsedHundredths, UsedRaw};
use super::{Definition, Meaning, Media, RawFormat, glob};

/// The attributes of one family.
struct Family {
    /// Model name patterns.
    models: &'static [&'static str],
    /// Firmware pattern.
    firmware: &'static str,
    rows: &'static [Definition],
}

const fn row(id: u8, name: &'static str, format: RawFormat, meaning: Meaning) -> Definition {
    Definition {
        id,
        name,
        format,
        meaning,
        media: Media::Any,
    }
}

/// The rows of the first family that matches; none for an unknown drive.
pub(super) fn rows(model: &str, firmware: &str) -> &'static [Definition] {
    FAMILIES
        .iter()
        .find(|family| {
            family.models.iter().any(|pattern| glob::matches(pattern, model))
                && glob::matches(family.firmware, firmware)
        })
        .map_or(&[], |family| family.rows)
}

#[rustfmt::skip]
static FAMILIES: &[Family] = &[
    // Capture: Samsung 850 EVO, 860 EVO. 177 counts down from 100 with the wear, as its maker's tool shows it.
    Family {
        models: &["Samsung SSD *", "SAMSUNG SSD *", "SAMSUNG MZ*"],
        firmware: "*",
        rows: &[
            row(177, "Wear_Leveling_Count", Raw48, Life(LeftNormalized)),
            row(187, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors),
            row(191, "Unknown_Samsung_Attr", Raw48, Other),
            row(195, "ECC_Error_Rate", Raw48, Other),
            row(199, "CRC_Error_Count", Raw48, LinkErrors),
            row(201, "Supercap_Status", Raw48, Other),
            row(202, "Exception_Mode_Status", Raw48, Other),
            row(235, "POR_Recovery_Count", Raw48, Other),
            row(243, "SATA_Downshift_Ct", Raw48, Other),
            row(244, "Thermal_Throttle_St", Raw48, Other),
            row(245, "Timed_Workld_Media_Wear", Raw48, Other),
            row(246, "Timed_Workld_RdWr_Ratio", Raw48, Other),
            row(247, "Timed_Workld_Timer", Raw48, Other),
            row(251, "NAND_Writes", Raw48, Other),
        ],
    },
    // Capture: Kingston A400 (2.5" and M.2), Gigabyte, Patriot Burst, Silicon Power with Phison S11 firmware.
    // 231 raw is percent left, also where the normalized value stays at 100 or counts used.
    Family {
        models: &["KINGSTON SA400*", "GIGABYTE GP-GSTF*", "Patriot Burst*", "Patriot Flare*", "KINGSTON OM4P0S3*"],
        firmware: "*",
        rows: PHISON,
    },
    Family { models: &["*"], firmware: "SBF[KM]*", rows: PHISON },
    // Report: HyperX 3K, ADATA SP900. 195, 201 and 204 hold two counts; 9 holds milliseconds beside hours.
    Family {
        models: &[
            "KINGSTON SH10[03]S3*", "KINGSTON SV300S3*", "KINGSTON SKC300S3*", "KINGSTON SKC380S3*", "ADATA SP900*",
            "OCZ-AGILITY3*", "OCZ-VERTEX3*", "OCZ VERTEX3*", "Corsair Force 3*", "Corsair Force G[ST]*",
        ],
        firmware: "*",
        rows: &[
            row(1, "Raw_Read_Error_Rate", Raw16Raw32, Other),
            row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
            row(9, "Power_On_Hours_and_Msec", HoursMilliseconds, PowerOnTime),
            row(13, "Soft_Read_Error_Rate", Raw16Raw32, Other),
            row(170, "Reserve_Block_Count", Raw48, Other),
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(174, "Unexpect_Power_Loss_Ct", Raw48, Other),
            row(177, "Wear_Range_Delta", Raw48, Other),
            row(181, "Program_Fail_Count", Raw48, Other),
            row(182, "Erase_Fail_Count", Raw48, Other),
            row(184, "IO_Error_Detect_Code_Ct", Raw48, Other),
            row(189, "Airflow_Temperature_Cel", Temperature, Temp),
            row(195, "ECC_Uncorr_Error_Count", Raw16Raw32, Other),
            row(196, "Reallocated_Event_Count", Raw48, Other),
            row(199, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            row(201, "Unc_Soft_Read_Err_Rate", Raw16Raw32, Other),
            row(204, "Soft_ECC_Correct_Rate", Raw16Raw32, Other),
            row(230, "Life_Curve_Status", Raw48, Other),
            row(231, "SSD_Life_Left", Raw48, Life(LeftNormalized)),
            row(233, "SandForce_Internal", Raw48, Other),
            row(234, "SandForce_Internal", Raw48, Other),
            row(235, "SuperCap_Health", Raw48, Other),
            row(241, "Lifetime_Writes_GiB", Raw48, Other),
            row(242, "Lifetime_Reads_GiB", Raw48, Other),
        ],
    },
    // Capture: Micron 5300. Field: 5100 and 5200 alike.
    Family {
        models: &["Micron_5[123]*", "MTFDDAK*TD[ST]*", "MTFDDAK*TC[BC]*"],
        firmware: "*",
        rows: &[
            row(5, "Reallocated_Sector_Ct", Raw48, ReallocatedSectors),
            row(170, "Reserved_Block_Pct", Raw48, Other),
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(173, "Avg_Block-Erase_Count", Raw48, Other),
            row(174, "Unexpect_Power_Loss_Ct", Raw48, Other),
            row(183, "SATA_Int_Downshift_Ct", Raw48, Other),
            row(202, "Percent_Lifetime_Remain", Raw48, Life(UsedRaw)),
            row(206, "Write_Error_Rate", Raw48, Other),
            row(210, "RAIN_Success_Recovered", Raw48, Other),
            row(211, "Integ_Scan_Complete_Cnt", Raw48, Other),
            row(212, "Integ_Scan_Folding_Cnt", Raw48, Other),
            row(246, "Total_LBAs_Written", Raw48, Other),
            row(247, "Host_Program_Page_Count", Raw48, Other),
            row(248, "Bckgnd_Program_Page_Cnt", Raw48, Other),
        ],
    },
    // Capture: a Micron SSD of this kind. Report: Crucial M500, where 202 raw has passed 100.
    Family {
        models: &["Crucial_CT*", "CT*SSD*", "Micron_M5*", "Micron_M6*", "Micron_1[13]00*", "MTFDDAK*MA[MVYZ]*",
                  "MTFDDAK*MBF*", "C300-CTFDDA*", "C400-MTFDDA*", "M4-CT*"],
        firmware: "*",
        rows: &[
            row(5, "Reallocate_NAND_Blk_Cnt", Raw48, ReallocatedSectors),
            row(170, "Reserved_Block_Count", Raw48, Other),
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(173, "Ave_Block-Erase_Count", Raw48, Other),
            row(174, "Unexpect_Power_Loss_Ct", Raw48, Other),
            row(180, "Unused_Reserve_NAND_Blk", Raw48, Other),
            row(183, "SATA_Interfac_Downshift", Raw48, Other),
            row(184, "Error_Correction_Count", Raw48, Other),
            row(195, "Cumulativ_Corrected_ECC", Raw48, Other),
            row(197, "Current_Pending_ECC_Cnt", Raw48, PendingSectors),
            row(202, "Percent_Lifetime_Remain", Raw48, Life(UsedRaw)),
            row(206, "Write_Error_Rate", Raw48, Other),
            row(210, "Success_RAIN_Recov_Cnt", Raw48, Other),
            row(246, "Total_LBAs_Written", Raw48, Other),
            row(247, "Host_Program_Page_Count", Raw48, Other),
            row(248, "FTL_Program_Page_Count", Raw48, Other),
        ],
    },
    // Capture: WD Blue 500 GB of the SanDisk line; its maker's tool shows 100 - W0/100 of attribute 230 as health.
    Family {
        models: &["WDC WDS*", "WDC  WDS*", "WD Blue SA510*", "WD Green 2.5*"],
        firmware: "*",
        rows: &[
            row(5, "Reallocated_Sector_Ct", Raw48, ReallocatedSectors),
            row(165, "Block_Erase_Count", Raw48, Other),
            row(166, "Minimum_PE_Cycles_TLC", Raw48, Other),
            row(167, "Max_Bad_Blocks_per_Die", Raw48, Other),
            row(168, "Maximum_PE_Cycles_TLC", Raw48, Other),
            row(169, "Total_Bad_Blocks", Raw48, Other),
            row(170, "Grown_Bad_Blocks", Raw48, Other),
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(173, "Average_PE_Cycles_TLC", Raw48, Other),
            row(174, "Unexpected_Power_Loss", Raw48, Other),
            row(230, "Media_Wearout_Indicator", Hex48, Life(UsedHundredths)),
            row(233, "NAND_GB_Written_TLC", Raw48, Other),
            row(234, "NAND_GB_Written_SLC", Raw48, Other),
            row(241, "Host_Writes_GiB", Raw48, Other),
            row(242, "Host_Reads_GiB", Raw48, Other),
            row(244, "Temp_Throttle_Status", Raw48, Other),
        ],
    },
    // Capture: SanDisk pSSD behind USB.
    Family {
        models: &["SanDisk pSSD*"],
        firmware: "*",
        rows: &[
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(173, "Avg_Write/Erase_Count", Raw48, Other),
            row(174, "Unexpect_Power_Loss_Ct", Raw48, Other),
            row(230, "Perc_Write/Erase_Count", Raw48, Life(UsedRaw)),
            row(232, "Perc_Avail_Resrvd_Space", Raw48, Other),
            row(234, "Perc_Write/Erase_Ct_BC", Raw48, Other),
        ],
    },
    // Field: 190 of CloudSpeed CS1K is a warning flag.
    Family {
        models: &["SanDisk*CS1K*", "SDLF1*"],
        firmware: "*",
        rows: &[row(190, "Temperature_Warning", Raw48, Other)],
    },
    // Field: 190 of Nytro XF1230 counts link errors.
    Family {
        models: &["XF1230-*", "Seagate Nytro XF1230*"],
        firmware: "*",
        rows: &[row(190, "SATA_Error_Count", Raw48, LinkErrors)],
    },
    // Capture: Intel S4510. Report: S3500. 233 counts down from 100 with the wear.
    Family {
        models: &["INTEL SSDSC2K[BGRW]*", "INTEL SSDSC2B[ABFXP]*", "INTEL SSDSCKK[BIJ]*", "SSDSC2KG*", "SSDSC2KB*"],
        firmware: "*",
        rows: &[
            row(5, "Reallocated_Sector_Ct", Raw48, ReallocatedSectors),
            row(170, "Available_Reservd_Space", Raw48, Other),
            row(171, "Program_Fail_Count", Raw48, Other),
            row(172, "Erase_Fail_Count", Raw48, Other),
            row(174, "Unsafe_Shutdown_Count", Raw48, Other),
            row(175, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            row(183, "SATA_Downshift_Count", Raw48, Other),
            row(184, "End-to-End_Error_Count", Raw48, Other),
            row(187, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors),
            row(190, "Drive_Temperature", Temperature, Temp),
            row(192, "Unsafe_Shutdown_Count", Raw48, Other),
            row(197, "Pending_Sector_Count", Raw48, PendingSectors),
            row(199, "CRC_Error_Count", Raw48, LinkErrors),
            row(225, "Host_Writes_32MiB", Raw48, Other),
            row(226, "Workld_Media_Wear_Indic", Raw48, Other),
            row(227, "Workld_Host_Reads_Perc", Raw48, Other),
            row(228, "Workload_Minutes", Raw48, Other),
            row(233, "Media_Wearout_Indicator", Raw48, Life(LeftNormalized)),
            row(234, "Thermal_Throttle_Status", Raw24Raw24, Other),
            row(235, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            row(241, "Host_Writes_32MiB", Raw48, Other),
            row(242, "Host_Reads_32MiB", Raw48, Other),
            row(243, "NAND_Writes_32MiB", Raw48, Other),
        ],
    },
    // Field: Intel's other SSDs have the same wear indicator; 520 and 330 count milliseconds beside hours.
    Family {
        models: &["INTEL SSDSC2C[TW]*", "INTEL SSDSC2BW*"],
        firmware: "*",
        rows: &[
            row(9, "Power_On_Hours_and_Msec", HoursMilliseconds, PowerOnTime),
            row(233, "Media_Wearout_Indicator", Raw48, Life(LeftNormalized)),
        ],
    },
    Family {
        models: &["INTEL SSD*"],
        firmware: "*",
        rows: &[row(233, "Media_Wearout_Indicator", Raw48, Life(LeftNormalized))],
    },
    // Report: ADATA SP550; later SU lines alike. 169 raw is percent left where it is filled in.
    Family {
        models: &["ADATA SP5[58]0*", "ADATA SP600*", "ADATA SU[5689]??*"],
        firmware: "*",
        rows: &[
            row(148, "Total_SLC_Erase_Ct", Raw48, Other),
            row(149, "Max_SLC_Erase_Ct", Raw48, Other),
            row(150, "Min_SLC_Erase_Ct", Raw48, Other),
            row(151, "Average_SLC_Erase_Ct", Raw48, Other),
            row(160, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors),
            row(161, "Valid_Spare_Block_Cnt", Raw48, Other),
            row(163, "Initial_Bad_Block_Count", Raw48, Other),
            row(164, "Total_Erase_Count", Raw48, Other),
            row(165, "Max_Erase_Count", Raw48, Other),
            row(166, "Min_Erase_Count", Raw48, Other),
            row(167, "Average_Erase_Count", Raw48, Other),
            row(168, "Max_Erase_Count_of_Spec", Raw48, Other),
            row(169, "Remaining_Lifetime_Perc", Raw48, Life(LeftRaw)),
            row(178, "Runtime_Invalid_Blk_Cnt", Raw48, Other),
            row(241, "Host_Writes_32MiB", Raw48, Other),
            row(242, "Host_Reads_32MiB", Raw48, Other),
            row(245, "TLC_Writes_32MiB", Raw48, Other),
        ],
    },
    // Field: this firmware counts half degrees.
    Family {
        models: &["ADATA SSD*"],
        firmware: "3*4*6*",
        rows: &[row(194, "Temperature_Celsius", HalfCelsius, Temp)],
    },
    // Report: Plextor M6S; only its maker knows what 170-174 count.
    Family {
        models: &["PLEXTOR PX-???M[3567]*"],
        firmware: "*",
        rows: &[
            row(170, "Unknown_Plextor_Attrib", Raw48, Other),
            row(171, "Unknown_Plextor_Attrib", Raw48, Other),
            row(172, "Unknown_Plextor_Attrib", Raw48, Other),
            row(173, "Unknown_Plextor_Attrib", Raw48, Other),
            row(174, "Unknown_Plextor_Attrib", Raw48, Other),
            row(241, "Host_Writes_32MiB", Raw48, Other),
            row(242, "Host_Reads_32MiB", Raw48, Other),
        ],
    },
    // Report: Apacer AS340.
    Family {
        models: &["Apacer AS340*"],
        firmware: "*",
        rows: &[
            row(164, "Average_Erase_Count", Raw48, Other),
            row(166, "Later_Bad_Block_Count", Raw48, Other),
            row(167, "SSD_Protect_Mode", Raw48, Other),
            row(192, "Unexpect_Power_Loss_Ct", Raw48, Other),
        ],
    },
    // Field: the controller's temperature stands in 231 here, of all SSDs.
    Family {
        models: &["ATP *"],
        firmware: "*",
        rows: &[row(231, "Controller_Temperature", Temperature, Temp)],
    },
    // Field: YMTC firmware has its sensor in 243.
    Family {
        models: &["ZHITAI*", "YMTC*"],
        firmware: "*",
        rows: &[row(243, "Temperature_Celsius", Temperature, Temp)],
    },
    // Field: tenths of a degree, half minutes.
    Family {
        models: &["SAMSUNG SV0412H", "SAMSUNG SV1204H"],
        firmware: "*",
        rows: &[
            row(9, "Power_On_Half_Minutes", HalfMinutes, PowerOnTime),
            row(194, "Temperature_Celsius_x10", TenthsCelsius, Temp),
        ],
    },
    // Capture: SpinPoint MP0804H. Field: SpinPoint P40, P80, V40, V60, V80 and M40 of the same years.
    Family {
        models: &["SAMSUNG MP0[3468]0[234]H*", "SAMSUNG SV????[HND]", "SAMSUNG SP[0128]???[CHN]", "SAMSUNG SP40A2H"],
        firmware: "*",
        rows: &[row(9, "Power_On_Half_Minutes", HalfMinutes, PowerOnTime)],
    },
    // Capture: MHY2120BH, whose first firmware line counts transfer errors in 240.
    Family {
        models: &["FUJITSU MHY2???BH*"],
        firmware: "*",
        rows: &[row(240, "Transfer_Error_Rate", Raw48, Other)],
    },
    // Field: Fujitsu disks up to the MHV line count seconds.
    Family {
        models: &["FUJITSU MP[ABCDEFG]*", "FUJITSU MH[GHJKLMNRSTUV]*", "FUJITSU M1623TAU*"],
        firmware: "*",
        rows: &[row(9, "Power_On_Seconds", Seconds, PowerOnTime)],
    },
    // Field: these Maxtors have something else in 194. All of that time count minutes.
    Family {
        models: &["Maxtor 2B0??H1*", "Maxtor 4G120J6*", "Maxtor 4G160J[68]*", "Maxtor 4D0[2468]0H[1234]*"],
        firmware: "*",
        rows: &[
            row(9, "Power_On_Minutes", Minutes, PowerOnTime),
            row(194, "Unknown_Attribute", Raw48, Other),
        ],
    },
    Family {
        models: &["Maxtor [2345678]*"],
        firmware: "*",
        rows: &[row(9, "Power_On_Minutes", Minutes, PowerOnTime)],
    },
    // Field: Toshiba's parallel 2.5" disks and Hitachi's DK23 count minutes.
    Family {
        models: &["TOSHIBA MK????GA*", "HITACHI_DK23*", "HITACHI_DK14*"],
        firmware: "*",
        rows: &[row(9, "Power_On_Minutes", Minutes, PowerOnTime)],
    },
    // Capture: MG09 with microwave-assisted recording.
    Family {
        models: &["TOSHIBA MG09*", "TOSHIBA MG1*"],
        firmware: "*",
        rows: &[row(27, "MAMR_Health_Monitor", Raw48, Other)],
    },
    // Field: head flying hours of Seagate's Barracuda 7200.11 and later hold other counts above them.
    Family {
        models: &["ST*"],
        firmware: "*",
        rows: &[row(240, "Head_Flying_Hours", Raw24Raw8, Other)],
    },
];

#[rustfmt::skip]
static PHISON: &[Definition] = &[
    row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
    row(167, "Write_Protect_Mode", Raw48, Other),
    row(168, "SATA_Phy_Error_Count", Raw48, LinkErrors),
    row(169, "Bad_Block_Rate", Raw48, Other),
    row(170, "Bad_Blk_Ct_Erl/Lat", Pair16, Other),
    row(172, "Erase_Fail_Count", Raw48, Other),
    row(173, "MaxAvgErase_Ct", Raw16Average16, Other),
    row(181, "Program_Fail_Count", Raw48, Other),
    row(182, "Erase_Fail_Count", Raw48, Other),
    row(192, "Unsafe_Shutdown_Count", Raw48, Other),
    row(196, "Reallocated_Event_Count", Raw16Raw16, Other),
    row(199, "SATA_CRC_Error_Count", Raw48, LinkErrors),
    row(218, "CRC_Error_Count", Raw48, LinkErrors),
    row(231, "SSD_Life_Left", Raw48, Life(LeftRaw)),
    row(233, "Flash_Writes_GiB", Raw48, Other),
    row(241, "Lifetime_Writes_GiB", Raw48, Other),
    row(242, "Lifetime_Reads_GiB", Raw48, Other),
    row(244, "Average_Erase_Count", Raw48, Other),
    row(245, "Max_Erase_Count", Raw48, Other),
    row(246, "Total_Erase_Count", Raw48, Other),
];
