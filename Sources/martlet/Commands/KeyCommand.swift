import ArgumentParser
import MartletAgent
import MartletSync

struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Make the keys that encrypt and sign what travels.",
        discussion: """
            Files with keys are made readable by their owner alone, and are refused where others can read them. No command \
            prints a secret. To rotate: add a key on all nodes, then `use` it on each; remove the line of an old one when \
            nothing on the topic is sealed with it any more. Agents take a changed key ring over while they run.
            """,
        subcommands: [Add.self, Use.self, List.self, Generate.self, Show.self])

    struct Ring: ParsableArguments {
        @Argument(help: "The key ring (security.keyRingFile).", completion: .file())
        var ring: String
        @Argument(help: "The key's ID: 1 to 64 letters, digits, dots, dashes and underscores.")
        var id: String
        @OptionGroup var output: JSONFlag
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add a random key to a key ring; makes the file where there is none.")
        @OptionGroup var ring: Ring
        @Flag(help: "It seals what is sent from now on. All nodes must have it by then. The first key always does.")
        var current = false

        func run() throws {
            try show(try KeyFiles.addKey(ring.id, makesCurrent: current, to: ring.ring), json: ring.output.json)
        }
    }

    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "use", abstract: "Seal what is sent from now on with another key of the ring.")
        @OptionGroup var ring: Ring

        func run() throws { try show(try KeyFiles.useKey(ring.id, in: ring.ring), json: ring.output.json) }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the IDs of the keys of a ring, never the keys.")
        @Argument(help: "The key ring.", completion: .file())
        var ring: String
        @OptionGroup var output: JSONFlag

        func run() throws { try show(try KeyFiles.ring(ring), json: output.json) }
    }

    struct Generate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "generate", abstract: "Make a node's signing key, and print its public key.",
            discussion: "The file must not be there yet. Others enter the public key under security.origins.")
        @Argument(help: "The file (security.signingKeyFile).", completion: .file())
        var file: String

        func run() throws { print(try KeyFiles.generateSigningKey(file)) }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print the public key of a signing key.")
        @Argument(help: "The file.", completion: .file())
        var file: String

        func run() throws { print(try KeyFiles.publicKey(file)) }
    }
}

private func show(_ ring: KeyRing, json: Bool) throws {
    if json { return try JSON.print(["current": ring.current, "ids": ring.ids]) }
    for id in ring.ids { print(id == ring.current ? "\(id)  current" : id) }
}
