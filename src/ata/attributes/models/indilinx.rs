//! Controllers by Indilinx, as OCZ and others sold them, and by JMicron. Their attributes 195-208 are other things than
//! anybody else's: hosts' reads and writes where others count errors.

use super::super::Meaning::{
    LinkErrors, Other, PowerCycles, PowerOnTime, ReallocatedSectors, Temperature as Temp, Wear as Life,
};
use super::super::RawFormat::{self, Hex, Number, Pair, Raw48, Temperature, Words};
use super::super::Wear::LeftRaw;
use super::super::raw::BYTES_64;
use super::super::raw::RawByte;
use super::super::raw::RawByte::{R, Reserved, Worst, Zero};
use super::{Definition, Family, count, row};

/// The first generation lays its numbers over the normalized and worst values too.
const WIDE: RawFormat = Number(&BYTES_64);

const fn wide(id: u8, name: &'static str) -> Definition {
    row(id, name, WIDE, Other)
}

/// JMicron's oldest write text and counters from the worst value on, the first byte foremost.
const JMICRON_BYTES: &[RawByte] = &[Worst, R(0), R(1), R(2), R(3), R(4), R(5), Reserved];
const JMICRON_64: RawFormat = Hex(&JMICRON_BYTES);
const JMICRON_48: &[RawByte] = &[Worst, R(0), R(1), R(2), R(3), R(4)];

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Replay: the first Barefoot.
    Family {
        models: &[
            "Corsair CSSD-V*", "Corsair CMFSSD-*D1", "CRUCIAL_CT*M225", "G.SKILL FALCON *", "OCZ[ -]AGILITY", "OCZ[ -]ONYX",
            "OCZ[ -]VERTEX", "OCZ[ -]VERTEX 1199", "OCZ[ -]VERTEX-TURBO", "OCZ[ -]VERTEX v1.10", "Patriot[ -]Torqx*",
            "RENICE Z2", "STT_FT[MD]*GX25H", "TS18M*MLC*GSSD", "TS25M*MLC*GSSD", "FM-25S2I-*", "TS60GSSD25D-M",
            "TS120GSSD25D-M",
        ],
        firmware: "*",
        rows: &[
            wide(1, "Raw_Read_Error_Rate"),
            row(9, "Power_On_Hours", WIDE, PowerOnTime),
            row(12, "Power_Cycle_Count", WIDE, PowerCycles),
            wide(184, "Initial_Bad_Block_Count"),
            wide(195, "Program_Failure_Blk_Ct"),
            wide(196, "Erase_Failure_Blk_Ct"),
            wide(197, "Read_Failure_Blk_Ct"),
            wide(198, "Read_Sectors_Tot_Ct"),
            wide(199, "Write_Sectors_Tot_Ct"),
            wide(200, "Read_Commands_Tot_Ct"),
            wide(201, "Write_Commands_Tot_Ct"),
            wide(202, "Error_Bits_Flash_Tot_Ct"),
            wide(203, "Corr_Read_Errors_Tot_Ct"),
            wide(204, "Bad_Block_Full_Flag"),
            wide(205, "Max_PE_Count_Spec"),
            wide(206, "Min_Erase_Count"),
            wide(207, "Max_Erase_Count"),
            wide(208, "Average_Erase_Count"),
            wide(209, "Remaining_Lifetime_Perc"),
            wide(210, "Indilinx_Internal"),
            row(211, "SATA_Error_Ct_CRC", WIDE, LinkErrors),
            wide(212, "SATA_Error_Ct_Handshake"),
            wide(213, "Indilinx_Internal"),
        ],
    },
    // Replay: Barefoot 2, Everest.
    Family {
        models: &["OCZ VERTEX[ -]PLUS", "OCZ-VERTEX PLUS*", "OCZ-OCTANE*", "OCZ-PETROL*", "OCZ-AGILITY4*", "OCZ-VERTEX4"],
        firmware: "*",
        rows: &[count(232, "Lifetime_Writes")],
    },
    // Replay: Barefoot 3. 198 and 199 count GiB.
    Family {
        models: &["OCZ-VECTOR*", "OCZ-VERTEX4[56]0*", "OCZ-SABER1000", "OCZ-ARC100", "Radeon R7"],
        firmware: "*",
        rows: &[
            row(5, "Runtime_Bad_Block", Raw48, ReallocatedSectors),
            count(171, "Avail_OP_Block_Count"),
            count(174, "Pwr_Cycle_Ct_Unplanned"),
            count(187, "Total_Unc_NAND_Reads"),
            count(195, "Total_Prog_Failures"),
            count(196, "Total_Erase_Failures"),
            count(197, "Total_Unc_Read_Failures"),
            count(198, "Host_Reads_GiB"),
            count(199, "Host_Writes_GiB"),
            count(205, "Max_Rated_PE_Count"),
            count(206, "Min_Erase_Count"),
            count(207, "Max_Erase_Count"),
            count(208, "Average_Erase_Count"),
            row(210, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            count(212, "Pages_Requiring_Rd_Rtry"),
            count(213, "Snmple_Retry_Attempts"),
            count(214, "Adaptive_Retry_Attempts"),
            count(222, "RAID_Recovery_Count"),
            count(224, "In_Warranty"),
            count(225, "DAS_Polarity"),
            count(226, "Partial_Pfail"),
            count(230, "Write_Throttling"),
            row(233, "Remaining_Lifetime_Perc", Raw48, Life(LeftRaw)),
            count(241, "Host_Writes_GiB"),
            count(242, "Host_Reads_GiB"),
            count(249, "Total_NAND_Prog_Ct_GiB"),
            count(251, "Total_NAND_Read_Ct_GiB"),
        ],
    },
    // Replay: Intrepid 3000.
    Family {
        models: &["OCZ INTREPID 3*"],
        firmware: "*",
        rows: &[
            row(5, "Runtime_Bad_Block", Raw48, ReallocatedSectors),
            count(100, "Total_Blocks_Erased"),
            count(171, "Avail_OP_Block_Count"),
            count(174, "Pwr_Cycle_Ct_Unplanned"),
            count(184, "Factory_Bad_Block_Count"),
            count(187, "Total_Unc_NAND_Reads"),
            row(190, "Temperature_Celsius", Temperature, Temp),
            count(195, "Total_Prog_Failures"),
            count(196, "Total_Erase_Failures"),
            count(197, "Total_Unc_Read_Failures"),
            count(198, "Host_Reads_GiB"),
            count(199, "Host_Writes_GiB"),
            count(202, "Total_Read_Bits_Corr_Ct"),
            count(205, "Max_Rated_PE_Count"),
            count(206, "Min_Erase_Count"),
            count(207, "Max_Erase_Count"),
            count(208, "Average_Erase_Count"),
            row(210, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            count(211, "SATA_UNC_Count"),
            count(212, "NAND_Reads_with_Retry"),
            count(213, "Simple_Rd_Rtry_Attempts"),
            count(214, "Adaptv_Rd_Rtry_Attempts"),
            count(221, "Int_Data_Path_Prot_Unc"),
            count(222, "RAID_Recovery_Count"),
            count(230, "SuperCap_Charge_Status"),
            row(233, "Remaining_Lifetime_Perc", Raw48, Life(LeftRaw)),
            count(249, "Total_NAND_Prog_Ct_GiB"),
            count(251, "Total_NAND_Read_Ct_GiB"),
        ],
    },
    // Replay: JMicron's first, told by the firmware.
    Family { models: JMICRON_OLD, firmware: "[BVv]*", rows: JMICRON_602 },
    // Replay: JMF and Maxiotek after it.
    Family {
        models: &[
            "ADATA S596 Turbo", "ADATA SP310", "ADATA SP600*", "ADATA SX930", "APPLE SSD TS*C", "IM2S3138E-*",
            "KingSpec KDM-SA.51-008GMJ", "KINGSTON SNV425S2*", "KINGSTON SSDNOW 30GB", "KINGSTON SS100S2*",
            "KINGSTON SNVP325S2*", "KINGSTON SVP?100S2*", "KINGSTON SVP100S2*", "KINGSTON SV100S2*", "KINGSTON SV200S3*",
            "NT-64", "NT-128", "NT-256", "NT-512", "NT-1T", "NT-2T", "TOSHIBA THNS128GG4BBAA", "TOSHIBA THNSNC128GMLJ",
            "TS*GSSD25*-M", "TS*GSSD25*-MD", "TS*GSSD25*-S", "TS*GSSD[37]40*", "TS*GMSA[37]40*",
        ],
        firmware: "*",
        rows: &[
            count(3, "Unknown_JMF_Attribute"),
            count(7, "Unknown_JMF_Attribute"),
            count(8, "Unknown_JMF_Attribute"),
            count(10, "Unknown_JMF_Attribute"),
            count(167, "Unknown_JMF_Attribute"),
            row(168, "SATA_Phy_Error_Count", Raw48, LinkErrors),
            count(169, "Unknown_JMF_Attribute"),
            row(170, "Bad_Block_Count", Words, Other),
            row(173, "Erase_Count", Words, Other),
            count(175, "Bad_Cluster_Table_Count"),
            count(180, "Unknown_JMF_Attribute"),
            count(187, "Unknown_JMF_Attribute"),
            count(192, "Unexpect_Power_Loss_Ct"),
            count(231, "Unknown_JMF_Attribute"),
            count(233, "Unknown_JMF_Attribute"),
            count(234, "Unknown_JMF_Attribute"),
            count(240, "Unknown_JMF_Attribute"),
        ],
    },
];

const JMICRON_OLD: &[&str] = &["Kingston SSDNow V Series *", "TS*GSSD18*", "TS*GSSD25*"];

#[rustfmt::skip]
static JMICRON_602: &[Definition] = &[
    row(229, "Halt_System/Flash_ID", JMICRON_64, Other),
    row(232, "Firmware_Version_Info", JMICRON_64, Other),
    row(233, "ECC_Fail_Record", Hex(&JMICRON_48), Other),
    row(234, "Avg/Max_Erase_Count", Pair(&[&[Worst, R(0), R(1)], &[R(2), R(3), R(4)]]), Other),
    row(235, "Good/Sys_Block_Count", Pair(&[&[Worst, R(0), R(1)], &[Zero, Zero, R(2), R(3)]]), Other),
];
