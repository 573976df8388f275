import Foundation
import MartletStore
import SwiftData
import Testing

/// An app, its widget and its extensions may all be the first to open a file.
struct ManyProcessesTests {
    @Test func whoeverOpensAFileAtTheSameTimeFindsOneStore() throws {
        try withTemporaryFolder { folder in
            for round in 0..<8 {
                let configuration = ModelConfiguration(url: folder.appending(path: "\(round).store"))
                // Connections of their own, as other processes have them.
                let results = Results()
                DispatchQueue.concurrentPerform(iterations: 6) { number in
                    results.add(Result { try companyContainer(configuration).store.identifier })
                }
                let identifiers = try results.all.map { try $0.get() }
                #expect(Set(identifiers).count == 1)
                let context = ModelContext(try companyContainer(configuration))
                context.insert(Company(code: "A"))
                try context.save()
                #expect(try context.fetchCount(FetchDescriptor<Company>()) == 1)
            }
        }
    }

    private final class Results: @unchecked Sendable {  // safe because of the lock
        private let lock = NSLock()
        private var found: [Result<UUID, any Error>] = []
        func add(_ result: Result<UUID, any Error>) { lock.withLock { found.append(result) } }
        var all: [Result<UUID, any Error>] { lock.withLock { found } }
    }
}
