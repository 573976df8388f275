import Foundation
import MartletMerge
import MartletReplica
import MartletStore
import MartletWire

/// Translates the rows of a check into the terms of this store, as far as they can be compared.
struct AntiEntropyRows {
    /// A row in the state of another node.
    struct ReceivedRow {
        var change: RemoteChange
        var record: RowRecord
    }

    private let header: WireSnapshotHeader
    private let mapping: SnapshotMapping
    private let shapes: [String: [UInt8]]
    private let held: Set<Int64>

    /// - Parameters:
    ///   - shapes: the shapes of the tables that the message compares, by name.
    ///   - held: the tables that can't be compared now.
    init(_ header: WireSnapshotHeader, shapes: [String: [UInt8]], held: Set<Int64>, _ context: ReplicaContext) throws {
        self.header = header
        self.shapes = shapes
        self.held = held
        mapping = try SnapshotMapping(header, context, unseen: .all(of: context.node))
    }

    static func shapes(_ wire: WireCheckMessage) -> [String: [UInt8]] {
        Dictionary((wire.digests + wire.covered).map { ($0.name, Array($0.shape)) }, uniquingKeysWith: { a, _ in a })
    }

    /// - Throws: ``/MartletCore/StoreError`` with code `.corrupt` for invalid contents.
    func read(_ contents: WireSnapshotContents) throws -> [ReceivedRow] {
        var received: [ReceivedRow] = []
        var comparable: [UInt32: Bool] = [:]
        func add(_ place: UInt32, _ translated: SnapshotMapping.Translated) {
            guard translated.unknown.isEmpty, let change = translated.change, let state = change.state else { return }
            let isComparable =
                comparable[place] ?? Self.isComparable(change.entity, header, place, shapes, held)
            comparable[place] = isComparable
            guard isComparable else { return }
            let values = Dictionary(change.columns.map { ($0.slot, $0.value) }, uniquingKeysWith: { a, _ in a })
            received.append(
                ReceivedRow(
                    change: change,
                    record: RowRecord(
                        identity: change.identity, clocks: state.clocks, values: values, localID: change.localID)))
        }
        do {
            for tombstone in contents.tombstones { add(tombstone.entity, try mapping.translate(tombstone)) }
            for row in contents.rows { add(row.entity, try mapping.translate(row)) }
        } catch let error as WireError {
            throw SnapshotFormat.damaged(error.description)
        }
        return received
    }

    private static func isComparable(
        _ entity: Entity, _ header: WireSnapshotHeader, _ place: UInt32, _ shapes: [String: [UInt8]], _ held: Set<Int64>
    ) -> Bool {
        guard Int(place) < header.entities.count, !held.contains(entity.id) else { return false }
        return shapes[header.entities[Int(place)].name] == RecordShape(entity).digest
    }
}
