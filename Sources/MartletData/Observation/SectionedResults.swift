/// Results grouped by title, in the order in which the titles first occur.
public struct SectionedResults<Element: PersistentModel, SectionTitle: Hashable>: RandomAccessCollection, Equatable {
    private var sections: [ResultsSection<Element, SectionTitle>] = []
    private var positions: [SectionTitle: Int] = [:]

    init(_ results: [Element], by title: (Element) -> SectionTitle) {
        var elements: [[Element]] = []
        var titles: [SectionTitle] = []
        for result in results {
            let title = title(result)
            if let position = positions[title] {
                elements[position].append(result)
            } else {
                positions[title] = titles.count
                titles.append(title)
                elements.append([result])
            }
        }
        sections = zip(titles, elements).map { ResultsSection(title: $0, elements: $1) }
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { sections.count }
    public subscript(position: Int) -> ResultsSection<Element, SectionTitle> { sections[position] }

    public var sectionTitles: [SectionTitle] { sections.map(\.title) }
    public func contains(sectionTitle: SectionTitle) -> Bool { positions[sectionTitle] != nil }
    public func index(ofSectionTitled title: SectionTitle) -> Int? { positions[title] }

    /// The section with this title. Costs O(1).
    public subscript(sectionTitle title: SectionTitle) -> ResultsSection<Element, SectionTitle>? {
        positions[title].map { sections[$0] }
    }
}

/// The results with one title.
public struct ResultsSection<Element: PersistentModel, SectionTitle: Hashable>: RandomAccessCollection, Identifiable,
    Equatable
{
    public let title: SectionTitle
    private let elements: [Element]

    init(title: SectionTitle, elements: [Element]) {
        self.title = title
        self.elements = elements
    }

    public var id: SectionTitle { title }
    public var startIndex: Int { 0 }
    public var endIndex: Int { elements.count }
    public subscript(position: Int) -> Element { elements[position] }
}

/// The property by which results are grouped.
struct ResultsGrouping<Element: PersistentModel, SectionTitle: Hashable> {
    var keyPath: PartialKeyPath<Element>
    /// A single descriptor. It is stored as an array because an optimized build of a plain property lacks a symbol of
    /// Foundation's.
    var order: [SortDescriptor<Element>]
    var title: (Element) -> SectionTitle
}

extension ResultsGrouping where SectionTitle == String {
    init(_ keyPath: KeyPath<Element, String>) {
        self.init(
            keyPath: keyPath, order: [SortDescriptor(Self.sendable(keyPath), comparator: .lexical)],
            title: { $0[keyPath: keyPath] })
    }

    /// Models without a value get the empty title, before the others.
    init(_ keyPath: KeyPath<Element, String?>) {
        self.init(
            keyPath: keyPath, order: [SortDescriptor(Self.sendable(keyPath), comparator: .lexical)],
            title: { $0[keyPath: keyPath] ?? "" })
    }

    /// Safe because key paths are immutable, and Sendable has no representation of its own.
    private static func sendable<V>(_ keyPath: KeyPath<Element, V>) -> any KeyPath<Element, V> & Sendable {
        unsafeBitCast(keyPath, to: (any KeyPath<Element, V> & Sendable).self)
    }
}
