//! Builds what stands in the place of the system's clock and its random bits.

fn main() {
    println!("cargo:rerun-if-changed=src/system.c");
    cc::Build::new()
        .file("src/system.c")
        .link_lib_modifier("+whole-archive")
        .compile("streamweld_sim_system");
}
