import Foundation
import MartletStore

/// The parameters of `/changes`: `after=TOKEN`, one of `author=NAME`, `exclude-author=NAME` and `no-author`, and
/// `entity=TABLE` (may be repeated). The header `Last-Event-ID` takes precedence over `after`.
struct ChangesRequest {
    var query = HistoryQuery()

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the request is invalid.
    init(_ request: HTTPRequest) throws {
        guard let target = URLComponents(string: request.target) else { throw Self.error("The query is not valid.") }
        var authors: [HistoryQuery.AuthorFilter] = []
        for item in target.queryItems ?? [] {
            let value = item.value ?? ""
            guard item.name == "no-author" || !value.isEmpty else { throw Self.error("\(item.name): has no value.") }
            switch item.name {
            case "after":
                guard query.after == nil else { throw Self.error("after: was given more than once.") }
                query.after = try Self.token(value, "after")
            case "author": authors.append(.equal(value))
            case "exclude-author": authors.append(.notEqual(value))
            case "no-author":
                guard value.isEmpty else { throw Self.error("no-author: takes no value.") }
                authors.append(.absent)
            case "entity": query.entities.append(value)
            default: throw Self.error("\(item.name): unknown parameter.")
            }
        }
        guard authors.count <= 1 else {
            throw Self.error("Give only one of author, exclude-author and no-author, and give it once.")
        }
        query.author = authors.first
        let ids = request.values("last-event-id")
        guard ids.count <= 1 else { throw Self.error("Last-Event-ID: was sent more than once.") }
        // A client that has not received any event yet may send it without a value.
        if let id = ids.first, !id.isEmpty { query.after = try Self.token(id, "Last-Event-ID") }
    }

    private static func token(_ text: String, _ name: String) throws -> HistoryToken {
        guard let token = HistoryToken(text) else {
            throw error("\(name): must be a history token, as the id of an event.")
        }
        return token
    }

    private static func error(_ text: String) -> StoreError {
        StoreError(
            .invalidArgument, text,
            hint: "For example /changes, /changes?after=TOKEN&entity=note or /changes?exclude-author=martlet.sync.")
    }
}
