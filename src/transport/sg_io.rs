//! Linux SG_IO.
