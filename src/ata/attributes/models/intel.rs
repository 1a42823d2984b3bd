//! Intel SSDs, and the same drives under other names. 233 counts down from 100 with the wear.

use super::super::Meaning::{
    LinkErrors, Other, PendingSectors, PowerOnTime, Temperature as Temp, UncorrectableSectors, Wear as Life,
};
use super::super::RawFormat;
use super::super::RawFormat::{HoursMilliseconds, Pair, Raw16Raw16, Raw48, Temperature};
use super::super::Wear::LeftNormalized;
use super::super::raw::RawByte::R;
use super::{Definition, Family, count, row};

const WEAR: Definition = row(233, "Media_Wearout_Indicator", Raw48, Life(LeftNormalized));
const MILLISECONDS: Definition = row(9, "Power_On_Hours_and_Msec", HoursMilliseconds, PowerOnTime);
const UNCORRECTABLE: Definition = row(187, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors);
const CRC: Definition = row(199, "CRC_Error_Count", Raw48, LinkErrors);
const WRITES_225: Definition = count(225, "Host_Writes_32MiB");
const WRITES: Definition = count(241, "Host_Writes_32MiB");
const READS: Definition = count(242, "Host_Reads_32MiB");
const RESERVED: Definition = count(170, "Available_Reservd_Space");
const PROGRAM: Definition = count(171, "Program_Fail_Count");
const ERASE: Definition = count(172, "Erase_Fail_Count");
const POWER_LOSS: Definition = count(174, "Unexpect_Power_Loss_Ct");
const DOWNSHIFT: Definition = count(183, "SATA_Downshift_Count");
const UNSAFE: Definition = count(192, "Unsafe_Shutdown_Count");
const WORKLOAD_WEAR: Definition = count(226, "Workld_Media_Wear_Indic");
const WORKLOAD_READS: Definition = count(227, "Workld_Host_Reads_Perc");
const WORKLOAD_MINUTES: Definition = count(228, "Workload_Minutes");
/// Percent in R0, events in R4-R1.
const THROTTLE: RawFormat = Pair(&[&[R(0)], &[R(4), R(3), R(2), R(1)]]);

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Replay: X25-E, X25-M and X18-M of the first generation.
    Family {
        models: &["SSDSA2SH0*G1*", "INTELSSDSA2SH0*G1*", "INTEL SSDSA[12]MH???G1*"],
        firmware: "*",
        rows: &[
            UNSAFE, WRITES_225, count(226, "Intel_Internal"), count(227, "Intel_Internal"), count(228, "Intel_Internal"), WEAR,
        ],
    },
    // Replay: X25-M, X18-M and X25-V of the second.
    Family {
        models: &["INTEL SSDSA[12]M???G2*", "KINGSTON SSDNow 40GB"],
        firmware: "*",
        rows: &[UNSAFE, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES, WEAR],
    },
    // Replay: 311 and 313.
    Family {
        models: &["INTEL SSDSA2VP0*", "INTEL SSDMAEXC0*"],
        firmware: "*",
        rows: &[
            count(170, "Reserve_Block_Count"), PROGRAM, ERASE, DOWNSHIFT, UNSAFE, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS,
            WORKLOAD_MINUTES, WEAR, WRITES, READS,
        ],
    },
    // Replay: 710.
    Family {
        models: &["INTEL SSDSA2BZ???G3*"],
        firmware: "*",
        rows: &[
            count(170, "Reserve_Block_Count"), PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, UNSAFE, WRITES_225, WORKLOAD_WEAR,
            WORKLOAD_READS, WORKLOAD_MINUTES, WEAR, WRITES, READS,
        ],
    },
    // Replay: 320.
    Family {
        models: &["INTEL SSDSA[12][BCN][WT]???G3*"],
        firmware: "*",
        rows: &[
            count(170, "Reserve_Block_Count"), PROGRAM, ERASE, DOWNSHIFT, UNSAFE, CRC, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS,
            WORKLOAD_MINUTES, WEAR, WRITES, READS,
        ],
    },
    // Replay: 510.
    Family { models: &["INTEL SSDSC2MH???A2*"], firmware: "*", rows: &[UNSAFE, WRITES_225, WEAR] },
    // Replay: 520.
    Family {
        models: &["INTEL SSDSC2[BC]W???A3*"],
        firmware: "*",
        rows: &[
            MILLISECONDS, RESERVED, PROGRAM, ERASE, POWER_LOSS, UNCORRECTABLE, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS,
            WORKLOAD_MINUTES, WEAR, WRITES, READS, count(249, "NAND_Writes_1GiB"),
        ],
    },
    // Replay: 525, 530, 535, Pro 1500 and 2500.
    Family {
        models: &["INTEL SSDMCEAC*B3*", "INTEL SSDMCEA[WF]*", "INTEL SSDSC2B[WF]???[AH]*", "INTEL SSDSCKJ[WF]*"],
        firmware: "*",
        rows: &[
            MILLISECONDS, RESERVED, PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, UNCORRECTABLE, WRITES_225, WORKLOAD_WEAR,
            WORKLOAD_READS, WORKLOAD_MINUTES, WEAR, WRITES, READS, count(249, "NAND_Writes_1GiB"),
        ],
    },
    // Replay: 330 and 335.
    Family {
        models: &["INTEL SSDSC2CT*"],
        firmware: "*",
        rows: &[MILLISECONDS, WRITES_225, WEAR, WRITES, READS, count(249, "NAND_Writes_1GiB")],
    },
    // Replay: 540 and Pro 5400s; only the former counts milliseconds.
    Family {
        models: &["INTEL SSDSC[K2]KW???[HX]6*"],
        firmware: "*",
        rows: &[
            MILLISECONDS, RESERVED, PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, UNCORRECTABLE, WRITES_225, WORKLOAD_WEAR,
            WORKLOAD_READS, WORKLOAD_MINUTES, WEAR, count(249, "NAND_Writes_1GiB"),
        ],
    },
    Family {
        models: &["INTEL SSDSC[K2]KF???[HX]6*"],
        firmware: "*",
        rows: &[
            RESERVED, PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, UNCORRECTABLE, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS,
            WORKLOAD_MINUTES, WEAR, count(249, "NAND_Writes_1GiB"),
        ],
    },
    // Replay: 545s.
    Family {
        models: &["INTEL SSDSC[2K]K[WF]???[GT]8*"],
        firmware: "*",
        rows: &[
            PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, row(190, "Temperature_Case", Temperature, Temp), UNSAFE, CRC, WRITES_225,
            WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES, WEAR, WRITES, READS, count(249, "NAND_Writes_1GiB"),
        ],
    },
    // Replay: S3520 of these sizes; those of 240, 480 and 800 GB are known by the names of their forerunners.
    Family {
        models: &["INTEL SSDSC2BB960G7*", "INTEL SSDSC2BB150G7*", "INTEL SSDSC2BB760G7*", "INTEL SSDSC2BB01[26]T7*"],
        firmware: "*",
        rows: S3520,
    },
    // Report: S3500. Replay: 730, S3510, S3610, S3700, S3710.
    Family {
        models: &["INTEL SSDSC2B[ABPX]*", "INTEL SSDSC1N[ABPX]*"],
        firmware: "*",
        rows: &[
            RESERVED, PROGRAM, ERASE,
            count(174, "Unsafe_Shutdown_Count"),
            row(175, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            DOWNSHIFT,
            row(190, "Temperature_Case", Temperature, Temp),
            UNSAFE,
            row(194, "Temperature_Internal", Temperature, Temp),
            CRC, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES, WEAR,
            row(234, "Thermal_Throttle", THROTTLE, Other),
            WRITES, READS,
            count(243, "NAND_Writes_32MiB"),
        ],
    },
    // Replay: S3110.
    Family {
        models: &["INTEL SSDSCKKI*"],
        firmware: "*",
        rows: &[
            RESERVED, PROGRAM, ERASE, POWER_LOSS, DOWNSHIFT, UNCORRECTABLE, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS,
            WORKLOAD_MINUTES, WEAR, WRITES, READS, count(249, "NAND_Writes_1GiB"),
        ],
    },
    // Replay: S3520.
    Family { models: &["INTEL SSDSC[2K][JB]B*"], firmware: "*", rows: S3520 },
    // Capture: S4510. Replay: S4500, S4600, S4610.
    Family {
        models: &["INTEL SSDSC2K[BGR]*", "INTEL SSDSCKK[BGJ]*"],
        firmware: "*",
        rows: &[
            RESERVED, PROGRAM, ERASE,
            count(174, "Unsafe_Shutdown_Count"),
            row(175, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            DOWNSHIFT,
            count(184, "End-to-End_Error_Count"),
            UNCORRECTABLE,
            row(190, "Drive_Temperature", Temperature, Temp),
            UNSAFE,
            row(197, "Pending_Sector_Count", Raw48, PendingSectors),
            CRC, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES, WEAR,
            row(234, "Thermal_Throttle_Status", THROTTLE, Other),
            row(235, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            WRITES, READS,
            count(243, "NAND_Writes_32MiB"),
        ],
    },
    // Replay: S3520 and S4x00 with Dell's firmware, which renames and moves attributes; 233 is no wear here.
    Family {
        models: &["SSDSC2[JB]B*7R*", "SSDSCK[JB]B*7R*", "SSDSC2K[BG]*[78]R*", "SSDSCKK[BG]*[78]R*"],
        firmware: "*",
        rows: &[
            RESERVED,
            count(174, "Unsafe_Shutdown_Count"),
            row(195, "Uncorrectable_Error_Cnt", Raw48, UncorrectableSectors),
            CRC,
            row(201, "Power_Loss_Cap_Test", Raw16Raw16, Other),
            count(202, "End_of_Life"),
            WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES,
            count(233, "Total_LBAs_Written"),
            row(234, "Thermal_Throttle_Status", THROTTLE, Other),
            count(245, "Percent_Life_Remaining"),
        ],
    },
    // Field: what else is Intel's has the same wear indicator.
    Family { models: &["INTEL SSD*"], firmware: "*", rows: &[WEAR] },
];

#[rustfmt::skip]
static S3520: &[Definition] = &[
    RESERVED, PROGRAM, ERASE,
    count(174, "Unsafe_Shutdown_Count"),
    row(175, "Power_Loss_Cap_Test", Raw16Raw16, Other),
    DOWNSHIFT,
    count(184, "End-to-End_Error_Count"),
    UNCORRECTABLE,
    row(190, "Case_Temperature", Temperature, Temp),
    UNSAFE,
    row(194, "Drive_Temperature", Temperature, Temp),
    row(197, "Pending_Sector_Count", Raw48, PendingSectors),
    CRC, WRITES_225, WORKLOAD_WEAR, WORKLOAD_READS, WORKLOAD_MINUTES, WEAR,
    row(234, "Thermal_Throttle_Status", THROTTLE, Other),
    WRITES, READS,
    count(243, "NAND_Writes_32MiB"),
];
