//! Magic numbers long enough to be believed where they stand.

/// Where a magic number stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    /// Bytes from the start of the volume.
    Start(u64),
    /// Bytes before its end, which is counted in whole sectors of 512 bytes.
    End(u64),
}

/// A format, and where it shows itself.
pub(super) struct Place {
    pub(super) what: &'static str,
    pub(super) at: At,
    pub(super) magic: &'static [u8],
}

const fn start(what: &'static str, offset_bytes: u64, magic: &'static [u8]) -> Place {
    Place {
        what,
        at: At::Start(offset_bytes),
        magic,
    }
}

/// So many sectors before the end; the last one is the first.
const fn end(what: &'static str, sectors: u64, magic: &'static [u8]) -> Place {
    Place {
        what,
        at: At::End(sectors * 512),
        magic,
    }
}

const LUKS_SECOND: &[u8] = b"SKUL\xba\xbe";
const LVM: &[u8] = b"LABELONE";
const ISW: &[u8] = b"Intel Raid ISM Cfg Sig. ";
const DDF: &[u8] = b"\xde\x11\xde\x11";
const DDF_SWAPPED: &[u8] = b"\x11\xde\x11\xde";
const PROMISE: &[u8] = b"Promise Technology, Inc.";
const LDM: &[u8] = b"PRIVHEAD";
const UFS: &[u8] = b"\x54\x19\x01\x00";
const UFS_BIG: &[u8] = b"\x00\x01\x19\x54";
const UFS2: &[u8] = b"\x19\x01\x54\x19";
const UFS2_BIG: &[u8] = b"\x19\x54\x01\x19";

/// All of them. Sources: `luks2-format` 1.1.1 (LUKS; the second header has one of ten places), the kernel's headers of each file
/// system, `lvm2` `label.h`, the SNIA DDF specification 2.0, and what `dmraid` and `util-linux` document of the RAID sets of mainboards.
pub(super) const ANYWHERE: &[Place] = &[
    start("LUKS", 0, b"LUKS\xba\xbe"),
    start("LUKS", 0x4000, LUKS_SECOND),
    start("LUKS", 0x8000, LUKS_SECOND),
    start("LUKS", 0x1_0000, LUKS_SECOND),
    start("LUKS", 0x2_0000, LUKS_SECOND),
    start("LUKS", 0x4_0000, LUKS_SECOND),
    start("LUKS", 0x8_0000, LUKS_SECOND),
    start("LUKS", 0x10_0000, LUKS_SECOND),
    start("LUKS", 0x20_0000, LUKS_SECOND),
    start("LUKS", 0x40_0000, LUKS_SECOND),
    start("LVM", 0, LVM),
    start("LVM", 512, LVM),
    start("LVM", 1024, LVM),
    start("LVM", 1536, LVM),
    start("LVM 1", 0, b"HM\x01\0"),
    start("btrfs", 0x1_0040, b"_BHRfS_M"),
    start(
        "bcache",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    start(
        "bcachefs",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    start("XFS", 0, b"XFSB"),
    start("F2FS", 1024, b"\x10\x20\xf5\xf2"),
    start("JFS", 0x8000, b"JFS1"),
    start("ReiserFS", 0x1_0034, b"ReIsErFs"),
    start("ReiserFS", 0x1_0034, b"ReIsEr2Fs"),
    start("ReiserFS", 0x1_0034, b"ReIsEr3Fs"),
    start("ReiserFS", 0x2034, b"ReIsErFs"),
    start("Reiser4", 0x1_0000, b"ReIsEr4"),
    start("APFS", 32, b"NXSB"),
    start("ISO 9660", 0x8001, b"CD001"),
    start("UDF", 0x8001, b"BEA01"),
    start("squashfs", 0, b"hsqs"),
    start("squashfs", 0, b"sqsh"),
    start("EROFS", 1024, b"\xe2\xe1\xf5\xe0"),
    start("cramfs", 0, b"\x45\x3d\xcd\x28"),
    start("cramfs", 512, b"\x45\x3d\xcd\x28"),
    start("cramfs", 0, b"\x28\xcd\x3d\x45"),
    start("romfs", 0, b"-rom1fs-"),
    start("zonefs", 0, b"SFNZ"),
    start("dm-integrity", 0, b"integrt\0"),
    start("dm-verity", 0, b"verity\0\0"),
    start("Stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    start("Stratis", 9 * 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    start("VDO", 0, b"dmvdo001"),
    start("Ceph", 0, b"bluestore block device"),
    start("Oracle ASM", 32, b"ORCLDISK"),
    start("GFS2", 0x1_0000, b"\x01\x16\x19\x70"),
    start("OCFS2", 1024, b"OCFSV2"),
    start("OCFS2", 2048, b"OCFSV2"),
    start("OCFS2", 4096, b"OCFSV2"),
    start("OCFS2", 8192, b"OCFSV2"),
    start("UFS", 8192 + 1372, UFS),
    start("UFS", 8192 + 1372, UFS_BIG),
    start("UFS", 1372, UFS),
    start("UFS", 1372, UFS_BIG),
    start("UFS", 262_144 + 1372, UFS2),
    start("UFS", 262_144 + 1372, UFS2_BIG),
    start("UFS", 65536 + 1372, UFS2),
    start("UFS", 65536 + 1372, UFS2_BIG),
    start("UFS", 8192 + 1372, UFS2),
    start("UFS", 8192 + 1372, UFS2_BIG),
    start("HPFS", 8192, b"\x49\xe8\x95\xf9"),
    start("VxFS", 1024, b"\xf5\xfc\x01\xa5"),
    start("VxFS", 8192, b"\xa5\x01\xfc\xf5"),
    start("Novell NSS", 4096, b"SPB5"),
    start("BeFS", 512 + 32, b"1SFB"),
    start("VMware VMFS", 0x10_0000, b"\x0d\xd0\x01\xc0"),
    start("VMware VMFS", 0x20_0000, b"\x5e\xf1\xab\x2f"),
    start("a Windows dynamic disk", 3072, LDM),
    end("a Windows dynamic disk", 1, LDM),
    start("a GPT", 512, b"EFI PART"),
    start("a GPT", 4096, b"EFI PART"),
    start("an SGI disk label", 0, b"\x0b\xe5\xa9\x41"),
    start("an AIX disk label", 0, b"\xc9\xc2\xd4\xc1"),
    // The last two sectors of 512 or of 4096 bytes.
    end("Intel RAID", 2, ISW),
    end("Intel RAID", 16, ISW),
    end("DDF RAID", 1, DDF),
    end("DDF RAID", 1, DDF_SWAPPED),
    end("DDF RAID", 257, DDF),
    end("DDF RAID", 257, DDF_SWAPPED),
    end("Adaptec RAID", 1, b"\x37\xfc\x4d\x1e"),
    end("LSI RAID", 1, b"$XIDE$"),
    end("NVIDIA RAID", 2, b"NVIDIA"),
    end("HighPoint RAID", 11, b"\xf3\x16\x78\x5a"),
    end("HighPoint RAID", 11, b"\xfd\x16\x78\x5a"),
    start("HighPoint RAID", 9 * 512 + 32, b"\xf0\x16\x78\x5a"),
    start("HighPoint RAID", 9 * 512 + 32, b"\xfd\x16\x78\x5a"),
    end("Promise RAID", 16, PROMISE),
    end("Promise RAID", 63, PROMISE),
    end("Promise RAID", 255, PROMISE),
    end("Promise RAID", 256, PROMISE),
    end("Promise RAID", 399, PROMISE),
    end("Promise RAID", 591, PROMISE),
    end("Promise RAID", 675, PROMISE),
    end("Promise RAID", 735, PROMISE),
    end("Promise RAID", 911, PROMISE),
    end("Promise RAID", 951, PROMISE),
    end("Promise RAID", 974, PROMISE),
    end("Promise RAID", 991, PROMISE),
    end("Promise RAID", 3087, PROMISE),
];
