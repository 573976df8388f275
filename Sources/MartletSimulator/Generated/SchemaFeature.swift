/// A feature of a generated schema, or of the statements on it. Each can be disabled by its name.
public enum SchemaFeature: String, Sendable, CaseIterable, Comparable {
    // Tables and their keys.
    case withoutRowID = "without-rowid"
    case strict
    /// Keys of one column of any type, which are the row identity on every node.
    case naturalKeys = "natural-keys"
    case compositeKeys = "composite-keys"
    /// An integer key, and a unique column that is declared as the row identity.
    case declaredIdentities = "declared-identities"
    /// An integer key that is a foreign key.
    case keyReferences = "key-references"
    case autoincrement
    /// Keys with a REAL column.
    case realKeys = "real-keys"
    /// Natural keys that may be NULL.
    case nullKeys = "null-keys"

    // Columns.
    case affinities
    case collations
    case defaults
    case notNull = "not-null"
    case generatedColumns = "generated-columns"
    case checks
    /// CHECKs that read several columns.
    case rowChecks = "row-checks"

    // Unique keys and indexes.
    case uniqueColumns = "unique-columns"
    case compositeUnique = "composite-unique"
    case expressionIndexes = "expression-indexes"
    case partialIndexes = "partial-indexes"
    case plainIndexes = "plain-indexes"
    /// `ON CONFLICT` in the schema.
    case conflictClauses = "conflict-clauses"
    /// A column of a unique key that is NOT NULL and has a default, and `OR REPLACE` statements that write NULL to it.
    case replacedNulls = "replaced-nulls"

    // References.
    case references
    case compositeReferences = "composite-references"
    /// References to unique columns that aren't the row identity.
    case uniqueReferences = "unique-references"
    case selfReferences = "self-references"
    /// Self-references that must not be NULL: the first row refers to itself.
    case neededSelves = "needed-selves"
    case cyclicReferences = "cyclic-references"
    /// References of several columns, some of them NULL, whose other columns refer to nothing.
    case danglingParts = "dangling-parts"
    /// `ON DELETE` and `ON UPDATE`.
    case actions
    case deferred

    // Beside tables.
    /// Triggers that write to tracked tables, or refuse.
    case triggers
    /// Full-text indexes that triggers maintain.
    case fullText = "full-text"
    /// R-Trees that triggers maintain.
    case rtree
    /// Counters that triggers maintain in an untracked table.
    case counters
    /// Columns that are added and renamed, and tables and indexes that are created, on each node at a different time.
    case alters

    // Statements.
    case multipleRows = "multiple-rows"
    case upserts
    /// `OR REPLACE`.
    case replace
    /// `OR REPLACE` where an index on an expression may displace a row.
    case expressionReplace = "expression-replace"
    /// `OR IGNORE`, `OR FAIL`, `OR ABORT` and `OR ROLLBACK`.
    case resolutions
    /// `OR REPLACE` of rows that others reference without an action.
    case replacedTargets = "replaced-targets"
    /// Rows that are deleted, or change their keys, while others refer to them, by a program with foreign keys
    /// disabled.
    case leftTargets = "left-targets"
    /// `UPDATE OR REPLACE` that gives a row the key of another one.
    case takenKeys = "taken-keys"
    case keyMoves = "key-moves"
    /// Values that are computed from the row, or from another one.
    case computedValues = "computed-values"
    case savepoints
    case rollbacks
    /// Tables that a program rebuilds, with other rows or values, and writes to before Martlet has noticed.
    case rebuilds
    /// Untracked copies of tables (`CREATE TABLE ... AS`) that stay in the file, and later rebuilds of these tables.
    case backups
    /// Triggers that a program creates and fires before Martlet has read the schema.
    case lateTriggers = "late-triggers"
    /// Tables that a program drops and recreates right after writes, in one transaction or in several.
    case recreations

    // Names and values.
    case oddNames = "odd-names"
    case extremeValues = "extreme-values"

    public static func < (a: SchemaFeature, b: SchemaFeature) -> Bool { a.rawValue < b.rawValue }

    /// The features of statements, which aren't visible in a schema.
    package static let ofStatements: Set<SchemaFeature> = [
        .danglingParts, .multipleRows, .upserts, .replace, .expressionReplace, .replacedTargets, .leftTargets,
        .takenKeys, .resolutions,
        .keyMoves,
        .computedValues,
        .savepoints, .rollbacks, .rebuilds, .backups, .lateTriggers, .recreations, .extremeValues,
    ]

    /// Features that are off by default, with the reason. The only place where features are disabled.
    package static let off: [SchemaFeature: String] = [
        .replacedNulls: isNew, .backups: isNew, .lateTriggers: isNew, .recreations: isNew,
    ]
    private static let isNew = "not run over thousands of seeds yet"

    /// The features whose programs change tables in ways that Martlet only finds by comparing rows. What it finds is a
    /// transaction of its own in the history.
    package static let foundByComparison: Set<SchemaFeature> = [.rebuilds, .backups, .lateTriggers, .recreations]

    /// The features that are used by default.
    public static let standard = Set(allCases).subtracting(off.keys)
}

/// Converts lists of features to and from text.
public enum FeatureList {
    /// - Parameter text: names separated by commas; `all`, `default`, and names after a minus sign, which are removed.
    /// - Returns: nil if there is no feature of a given name.
    public static func features(_ text: String) -> Set<SchemaFeature>? {
        let words = text.split(separator: ",").map(String.init)
        var found: Set<SchemaFeature> = words.first?.hasPrefix("-") ?? false ? SchemaFeature.standard : []
        for word in words {
            switch word {
            case "all": found.formUnion(SchemaFeature.allCases)
            case "default": found.formUnion(SchemaFeature.standard)
            case "none": break
            default:
                let isOut = word.hasPrefix("-")
                guard let feature = SchemaFeature(rawValue: isOut ? String(word.dropFirst()) : word) else { return nil }
                if isOut { found.remove(feature) } else { found.insert(feature) }
            }
        }
        return found
    }

    public static func text(_ features: Set<SchemaFeature>) -> String {
        if features == SchemaFeature.standard { return "default" }
        let added = features.subtracting(SchemaFeature.standard).sorted().map(\.rawValue)
        let taken = SchemaFeature.standard.subtracting(features).sorted().map { "-" + $0.rawValue }
        let named = features.sorted().map(\.rawValue)
        guard !named.isEmpty else { return "none" }
        return (named.count < taken.count + added.count + 1 ? named : ["default"] + added + taken)
            .joined(separator: ",")
    }
}
