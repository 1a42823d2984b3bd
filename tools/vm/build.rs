//! Compiles the guest's init statically, so that the library can put it into an initrd without asking anything of the
//! guest. Where that is not possible (no static C library, no Linux on x86-64) an empty file stands in, and the library
//! says at run time that the bench is unavailable.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=init/main.rs");
    println!("cargo::rerun-if-changed=src/frame.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let out = Path::new(&variable("OUT_DIR")).join("init");
    let target = variable("TARGET");
    if let Err(why) = compile(&variable("RUSTC"), &target, &out) {
        println!("cargo::warning=the guest's init was not built, guest tests will be skipped: {why}");
        fs::write(&out, []).expect("the build directory is writable");
    }
}

fn compile(rustc: &str, target: &str, out: &Path) -> Result<(), String> {
    if !(target.starts_with("x86_64-") && target.contains("-linux-")) {
        return Err(format!(
            "the guest is Linux on x86-64, the target here is {target}"
        ));
    }
    let run = Command::new(rustc)
        .args(["--edition=2024", "--crate-name=init", "--crate-type=bin"])
        .args([
            "-Copt-level=s",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-Ctarget-feature=+crt-static",
        ])
        .arg(format!("--target={target}"))
        .arg("-o")
        .arg(out)
        .arg("init/main.rs")
        .output()
        .map_err(|error| format!("{rustc}: {error}"))?;
    if run.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&run.stderr).replace('\n', " "))
    }
}
