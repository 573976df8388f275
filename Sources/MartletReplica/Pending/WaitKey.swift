package import MartletCore

/// The key for what a pending row waits for.
package enum WaitKey {
    /// Any row at all: the pending row waits for several rows, and any of them may be enough.
    package static let anything: [UInt8] = Array("*".utf8)

    /// A missing row. The pending row is found by these bytes.
    package static func target(_ entity: Int64, _ identity: StableID) -> [UInt8] {
        Array("\(entity):".utf8) + identity.bytes
    }
}
