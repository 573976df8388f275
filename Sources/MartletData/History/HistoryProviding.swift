/// A store that keeps a history of its own.
///
/// A context's `fetchHistory` and `deleteHistory` select it by the type of its transactions.
public protocol HistoryProviding {
    associatedtype HistoryType: HistoryTransaction

    static var historyType: HistoryType.Type { get }
    func fetchHistory(_ descriptor: HistoryDescriptor<HistoryType>) throws -> [HistoryType]
    func deleteHistory(_ descriptor: HistoryDescriptor<HistoryType>) throws
}

extension HistoryProviding {
    public static var historyType: HistoryType.Type { HistoryType.self }
}
