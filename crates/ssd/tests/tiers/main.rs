//! Tiers of storage beside each other: 3D `XPoint`, persistent memory, NAND; one device, several.

mod group;
mod published;
mod xpoint;
