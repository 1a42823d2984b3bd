//! Disks of all makers but Seagate and what became of Samsung's.

use super::super::Meaning::{Other, PendingSectors, PowerOnTime, Temperature as Temp, UncorrectableSectors};
use super::super::RawFormat::{
    HalfMinutes, Hex48, Minutes, Raw24Raw24, Raw48, Seconds, TenthsCelsius, Words,
};
use super::{Definition, Family, count, row};

const MINUTES: Definition = row(9, "Power_On_Minutes", Minutes, PowerOnTime);
const HALF_MINUTES: Definition = row(9, "Power_On_Half_Minutes", HalfMinutes, PowerOnTime);
const SECONDS: Definition = row(9, "Power_On_Seconds", Seconds, PowerOnTime);

/// SpinPoint P80, whose firmware lines count differently: see the end of the revision.
const P80: &[&str] = &["SAMSUNG SP0[48]??[CN]", "SAMSUNG SP1[26]??[CN]"];

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Field: tenths of a degree, half minutes. Replay: both.
    Family {
        models: &["SAMSUNG SV0412H", "SAMSUNG SV1204H"],
        firmware: "*",
        rows: &[HALF_MINUTES, row(194, "Temperature_Celsius_x10", TenthsCelsius, Temp)],
    },
    // Capture: SpinPoint MP0804H. Replay: SpinPoint M40, M60, M80, P40, V40, V60, V80 of the same years.
    Family {
        models: &[
            "SAMSUNG MP0302H", "SAMSUNG MP0402H", "SAMSUNG MP0603H", "SAMSUNG MP0804H", "SAMSUNG SV????N",
            "SAMSUNG SV4012H", "SAMSUNG SV????D", "SAMSUNG HM0[468]0H[CI]", "SAMSUNG HM120I[CI]",
            "SAMSUNG HM1[026]0J[CI]", "SAMSUNG SP40A2H", "SAMSUNG SP80A4H", "SAMSUNG SP8004H",
        ],
        firmware: "*",
        rows: &[HALF_MINUTES],
    },
    // Replay: half minutes up to firmware -34 and, of 250 GB and of the P120 line, none.
    Family { models: &["SAMSUNG SP16[01]3[CN]"], firmware: "VF100-37", rows: &[] },
    Family { models: P80, firmware: "*-2[34]", rows: &[HALF_MINUTES] },
    Family {
        models: P80,
        firmware: "*-2[56789]",
        rows: &[HALF_MINUTES, row(198, "Total_Offl_Uncorrectabl", Raw48, UncorrectableSectors)],
    },
    Family {
        models: P80,
        firmware: "*-3[01234]",
        rows: &[HALF_MINUTES, row(198, "Total_Offl_Uncorrectabl", Raw48, UncorrectableSectors)],
    },
    // Replay: SpinPoint T166.
    Family {
        models: &["SAMSUNG HD080GJ", "SAMSUNG HD160HJ", "SAMSUNG HD252KJ", "SAMSUNG HD32[01]KJ", "SAMSUNG HD403LJ",
                  "SAMSUNG HD50[01]LJ"],
        firmware: "*",
        rows: &[row(197, "Total_Pending_Sectors", Raw48, PendingSectors)],
    },
    // Capture: MHY2120BH, whose first firmware line counts transfer errors in 240.
    Family { models: &["FUJITSU MHY2???BH*"], firmware: "*", rows: &[count(240, "Transfer_Error_Rate")] },
    // Replay: MHZ BJ counts minutes.
    Family { models: &["FUJITSU MHZ2???BJ*"], firmware: "*", rows: &[MINUTES] },
    // Replay: names of their own.
    Family {
        models: &["FUJITSU MHR2040AT*"],
        firmware: "*",
        rows: &[
            SECONDS,
            count(192, "Emerg_Retract_Cycle_Ct"),
            row(198, "Offline_Scan_UNC_SectCt", Raw48, UncorrectableSectors),
            count(200, "Write_Error_Count"),
        ],
    },
    Family {
        models: &["FUJITSU MHS20?0AT*"],
        firmware: "*",
        rows: &[
            SECONDS,
            count(192, "Emerg_Retract_Cycle_Ct"),
            row(198, "Offline_Scan_UNC_SectCt", Raw48, UncorrectableSectors),
            count(200, "Write_Error_Count"),
            count(201, "Detected_TA_Count"),
        ],
    },
    // Replay: Fujitsu disks up to the MHV line count seconds.
    Family {
        models: &["FUJITSU MP[ABCDEFG]*", "FUJITSU MH[GHJKLMNRSTUV]*", "FUJITSU M1623TAU*"],
        firmware: "*",
        rows: &[SECONDS],
    },
    // Replay: these Maxtors have something else in 194.
    Family {
        models: &["Maxtor 2B0??H1*", "Maxtor 4G120J6*", "Maxtor 4G160J[68]*", "Maxtor 4D0[2468]0H[1234]*"],
        firmware: "*",
        rows: &[MINUTES, count(194, "Unknown_Attribute")],
    },
    // Replay: with SATA of the second generation Maxtor counted hours.
    Family {
        models: &["Maxtor 6V*", "Maxtor 6H[45]00[FR]0*", "Maxtor 6G080L0*", "Maxtor 6G160[PE]0*", "Maxtor 7V*",
                  "Maxtor 7H500F0*"],
        firmware: "*",
        rows: &[],
    },
    Family { models: &["Maxtor [23456789]*"], firmware: "*", rows: &[MINUTES] },
    // Replay: Hitachi's lines that began as DK14 and DK23.
    Family {
        models: &["HITACHI_DK23*", "HITACHI_DK14*", "HTA422020F9AT*", "HE[JN]4230[23]0F9AT*", "HTC4260[23]0G5CE*",
                  "HTC4260[56]0G8CE*"],
        firmware: "*",
        rows: &[MINUTES, row(193, "Load_Cycle_Count", Raw24Raw24, Other)],
    },
    // Replay: Ultrastar 7K2 and HC560.
    Family { models: &["Hitachi HUS722T[12]TAL*", "HGST HUS722T[12]TAL*"], firmware: "*", rows: &[count(16, "Gas_Gauge")] },
    Family {
        models: &["WUH722020AL*", "WDC WUH722020AL*", "WDC  WUH722020AL*"],
        firmware: "*",
        rows: &[
            count(22, "Helium_Level"),
            row(82, "Head_Health_Score", Words, Other),
            row(90, "NAND_Master", Hex48, Other),
        ],
    },
    // Replay: WD Re.
    Family {
        models: &["WDC WD[12]004FBYZ-*", "WDC WD[234]000F[DY]YZ-*", "WDC WD2000FYYX-*"],
        firmware: "*",
        rows: &[count(16, "Total_LBAs_Read")],
    },
    // Replay: of Toshiba's 2.5" disks these lines count minutes; one firmware does not.
    Family { models: &["TOSHIBA MK??76GSX"], firmware: "GS001A", rows: &[] },
    Family {
        models: &["TOSHIBA MK??51GSY", "TOSHIBA MK??56GSY", "TOSHIBA MK??56GSYF", "TOSHIBA MK??61GSY", "TOSHIBA MK??61GSYN",
                  "TOSHIBA MK??76GSX"],
        firmware: "*",
        rows: &[MINUTES],
    },
    // Capture: MG09 with microwave-assisted recording.
    Family {
        models: &["TOSHIBA MG09*", "TOSHIBA MG1*"],
        firmware: "*",
        rows: &[
            count(23, "Helium_Condition_Lower"),
            count(24, "Helium_Condition_Upper"),
            count(27, "MAMR_Health_Monitor"),
        ],
    },
];
