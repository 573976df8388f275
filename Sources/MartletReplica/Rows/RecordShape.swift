import Crypto
import Foundation
import MartletCore
package import MartletMerge
package import MartletStore

/// The columns of an entity in the order of their names, which is the same on all nodes.
package struct RecordShape {
    package let columns: [(slot: Int, name: [UInt8], wasReference: Bool)]
    /// A digest of the columns. Rows of tables with different digests can't be compared.
    package let digest: [UInt8]

    package init(_ entity: Entity) {
        // Sorted by bytes, because other languages order text differently.
        let sorted = entity.sharedColumns.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        columns = sorted.map { ($0.slot, Array($0.name.utf8), $0.wasReference) }
        let text = sorted.map { "\($0.name)\u{0}\($0.reference ?? "")\u{0}" }.joined()
        digest = Array(SHA256.hash(data: Data("\(entity.name)\u{0}\(text)".utf8)).prefix(8))
    }

    /// Returns the digest of a row: its identity, whether it exists, its values, and the stamp of each. Nil if nothing
    /// of it counts.
    ///
    /// State with the lowest stamp is older than the tracking of its table. No transaction published it, so nothing
    /// says that other nodes have it.
    ///
    /// - Parameter countsUnclocked: true if such state counts as well.
    package func hash(_ record: RowRecord, countsUnclocked: Bool = false) -> DigestSum? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + columns.count * 40)
        var isEmpty = true
        func add(_ stamp: Stamp) {
            withUnsafeBytes(of: stamp.time.rawValue.bigEndian) { bytes.append(contentsOf: $0) }
            bytes += stamp.node.bytes
            isEmpty = false
        }
        func add(counted part: [UInt8]) {
            withUnsafeBytes(of: UInt32(truncatingIfNeeded: part.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes += part
        }
        add(counted: record.identity.bytes)
        if let existence = record.existence, countsUnclocked || existence.stamp != .zero {
            if case .alive = existence { bytes.append(1) } else { bytes.append(2) }
            add(existence.stamp)
        }
        for column in columns {
            guard let register = record.register(column.slot), countsUnclocked || register.stamp != .zero else {
                continue
            }
            bytes.append(3)
            add(counted: column.name)
            add(register.stamp)
            // An integer that is a row's number in this store is a different one elsewhere.
            guard !(column.wasReference && register.value.isInteger) else { continue }
            add(counted: StableID(values: [register.value]).bytes)
        }
        return isEmpty ? nil : DigestSum(bytes: SHA256.hash(data: bytes).prefix(16))
    }
}

extension Entity {
    /// The columns that nodes compare.
    package var comparedColumns: [ComparedColumn] {
        sharedColumns.map {
            ComparedColumn(slot: $0.slot, isReference: $0.reference != nil, wasReference: $0.wasReference)
        }
    }
}
