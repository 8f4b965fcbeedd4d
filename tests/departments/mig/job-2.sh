# jobgen slurm --site ./site.toml --queue interactive --gpus-per-node a100_3g.20gb:1 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=a100_3g.20gb:1
#SBATCH --mem=62G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=interactive
# jobgen: note: the launcher is srun, that of site site
