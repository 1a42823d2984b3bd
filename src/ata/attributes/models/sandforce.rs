//! Controllers by SandForce (later LSI), sold under many names.

use super::super::Meaning::{
    LinkErrors, Other, PowerOnTime, ReallocatedSectors, Temperature as Temp, Wear as Life,
};
use super::super::RawFormat::{HoursMilliseconds, Pair, Raw24Raw32, Raw48, Temperature};
use super::super::Wear::LeftNormalized;
use super::super::raw::RawByte::{R, Reserved, Zero};
use super::{Family, count, row};

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Replay: a firmware of its own.
    Family {
        models: &["Corsair Force LS SSD"],
        firmware: "S9FM01.8",
        rows: &[
            row(1, "Raw_Read_Error_Rate", Raw24Raw32, Other),
            row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
            row(9, "Power_On_Hours_and_Msec", HoursMilliseconds, PowerOnTime),
            count(162, "Unknown_SandForce_Attr"),
            count(170, "Reserve_Block_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Unknown_SandForce_Attr"),
            count(174, "Unexpect_Power_Loss_Ct"),
            count(181, "Program_Fail_Count"),
            count(218, "Unknown_SandForce_Attr"),
            row(231, "SSD_Life_Left", Raw48, Life(LeftNormalized)),
            count(241, "Lifetime_Writes_GiB"),
            count(242, "Lifetime_Reads_GiB"),
        ],
    },
    // Report: HyperX 3K, ADATA SP900. Replay: the other names. 195, 201 and 204 hold two counts; 9 holds milliseconds
    // beside hours.
    Family {
        models: &[
            "SandForce *", "KINGSTON SE50S3*", "KINGSTON SH10[03]S3*", "KINGSTON SHFS37A*", "KINGSTON SV300S3*",
            "KINGSTON SVP200S3*", "KINGSTON SKC100S3*", "KINGSTON SKC300S3*", "KINGSTON SKC380S3*", "KINGSTON SE100S3*",
            "KINGSTON SMS[24]*", "KINGSTON SNS4151S316GD", "ADATA SP[389]00", "ADATA SSD S396 *", "ADATA SSD S5[19][09] *",
            "ADATA SSD S[PX]900 *", "ADATA XM11 *", "ATP Velocity MIV *", "Comay BladeDrive E28 *", "Corsair CSSD-F*",
            "Corsair Voyager GTX", "Corsair Force SSD", "Corsair Force 3 SSD", "Corsair Force LS SSD", "Corsair Force G[ST]*",
            "FM-25S2S-*", "FTM??CT25H", "MKNSSDCR*", "MKNSSDEC*", "MKNSSDAT*", "Mushkin MKNSSDCL*", "MXSSD3MDSF-*",
            "OCZ[ -]AGILITY2*", "OCZ[ -]COLOSSUS2*", "OCZ[ -]ONYX2*", "OCZ[ -]VERTEX2*", "OCZ[ -]VERTEX-LE*", "OCZ-NOCTI",
            "OCZ-REVODRIVE*", "OCZ[ -]VELO*", "D2[CR]STK251*", "OCZ-AGILITY3*", "OCZ-SOLID3*", "OCZ-VERTEX3*", "OCZ VERTEX3*",
            "OCZ Z-DRIVE R4 *", "OCZ Z-DRIVE 4500", "TALOS2*", "APOC*", "DENC*", "DENEVA*", "FTNC*", "GFGC*", "MANG*", "MMOC*",
            "NIMC*", "TMSC*", "DENR*", "DRSAK*", "EC188*", "NIMR*", "PSIR*", "TRSAK*", "OWC Aura Pro*", "OWC Mercury *",
            "Patriot Pyro", "SanDisk SDSSDX*GG25", "SanDisk SDSSDA???G", "SuperSSpeed S301 *", "SG9XCS*", "SSD9SC*GED[EA]",
            "TX32*", "TX31C1*", "VN0*GCNMK*", "TX22D1*", "TX21B1*", "TX52D1*", "TS*GSSD[37]20", "UGB88P*GC*H[BF]?", "UGB99S*GC*H[BF]?", "VisionTek GoDrive *",
        ],
        firmware: "*",
        rows: &[
            row(1, "Raw_Read_Error_Rate", Raw24Raw32, Other),
            row(5, "Retired_Block_Count", Raw48, ReallocatedSectors),
            row(9, "Power_On_Hours_and_Msec", HoursMilliseconds, PowerOnTime),
            row(13, "Soft_Read_Error_Rate", Raw24Raw32, Other),
            count(100, "Gigabytes_Erased"),
            count(162, "Unknown_SandForce_Attr"),
            count(170, "Reserve_Block_Count"),
            count(171, "Program_Fail_Count"),
            count(172, "Erase_Fail_Count"),
            count(173, "Unknown_SandForce_Attr"),
            count(174, "Unexpect_Power_Loss_Ct"),
            count(177, "Wear_Range_Delta"),
            count(181, "Program_Fail_Count"),
            count(182, "Erase_Fail_Count"),
            count(184, "IO_Error_Detect_Code_Ct"),
            row(189, "Airflow_Temperature_Cel", Temperature, Temp),
            row(195, "ECC_Uncorr_Error_Count", Raw24Raw32, Other),
            row(198, "Uncorrectable_Sector_Ct", Pair(&[&[R(2), R(1), R(0)], &[Zero, Reserved, R(5), R(4)]]), Other),
            row(199, "SATA_CRC_Error_Count", Raw48, LinkErrors),
            row(201, "Unc_Soft_Read_Err_Rate", Raw24Raw32, Other),
            row(204, "Soft_ECC_Correct_Rate", Raw24Raw32, Other),
            count(218, "Unknown_SandForce_Attr"),
            count(230, "Life_Curve_Status"),
            row(231, "SSD_Life_Left", Raw48, Life(LeftNormalized)),
            count(233, "SandForce_Internal"),
            count(234, "SandForce_Internal"),
            count(235, "SuperCap_Health"),
            count(241, "Lifetime_Writes_GiB"),
            count(242, "Lifetime_Reads_GiB"),
        ],
    },
];
