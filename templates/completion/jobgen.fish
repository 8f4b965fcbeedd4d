# Completion of jobgen in fish; printed by: jobgen completion fish
function __jobgen_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (env _JOBGEN_COMPLETE=fish $words "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current
            case :directories
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete --command jobgen --no-files --arguments '(__jobgen_complete)'
